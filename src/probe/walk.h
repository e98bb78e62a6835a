// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <vector>

#include "analyse/match.h"
#include "sidetrack/ruleset.h"

namespace sidetrack::probe {

// What the rules of one table do with a packet.
struct Walk {
  Target end = Verdict::accept;    // Redirect, Tproxy, or a verdict
  std::uint32_t mark = 0;          // the packet's, then
  std::vector<const Rule*> rules;  // the jumps there and the rule that decides
};

// From the built-in chain `hook` on. What is left to the end of that chain, or returned there, is accepted.
[[nodiscard]] Walk walk(const Ruleset& ruleset, Table table, const char* hook, const PacketAtHook& packet);

}  // namespace sidetrack::probe
