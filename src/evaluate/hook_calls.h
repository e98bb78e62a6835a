// SPDX-License-Identifier: GPL-2.0-or-later
// What the kernel calls at a hook, in its order.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "evaluate/rule_walk.h"
#include "model/hook.h"
#include "model/live.h"

namespace sidetrack {

struct Call {
  enum class Kind : std::uint8_t { conntrack, rules, nat };
  Kind kind = Kind::rules;
  std::int32_t priority = 0;
  BaseChain base;  // of rules
};

// By priority; chains that could do nothing are left out. Those of type nat are one call for the nat core, which asks
// them at its own priority (nf_nat_register_fn). `device` is that of ingress and egress.
[[nodiscard]] std::vector<Call> calls_at(std::span<const Live> live, Family family, Hook hook,
                                         std::string_view device = {});

// The chains that the nat core asks, by their own priorities.
[[nodiscard]] std::vector<Call> nat_chains_at(std::span<const Live> live, Family family, Hook hook);

}  // namespace sidetrack
