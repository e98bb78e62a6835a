// SPDX-License-Identifier: GPL-2.0-or-later
// What `apply` may find: nothing, the rules of Istio's versions, of earlier options, half of them, all of it in other
// backends, with others' rules around.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/namespace.h"

namespace sidetrack::netns {

struct StartingState {
  const char* name;
  void (*make)(const Namespace& where, const std::string& variant);  // variant: "legacy" or "nft", of iptables-restore
  bool has_variants;                                                 // whether `variant` makes a difference
};

[[nodiscard]] const std::vector<StartingState>& starting_states();

// Makes the one of that name.
void make_state(const Namespace& where, std::string_view name, const std::string& variant);

}  // namespace sidetrack::netns
