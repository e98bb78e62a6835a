// SPDX-License-Identifier: GPL-2.0-or-later
// What agents of a node make of an ambient pod: rules, the policy rule and the route, in the words of their tools.
#pragma once

#include <string>
#include <vector>

#include "support/namespace.h"

namespace sidetrack::netns {

struct Agent {
  const char* name;   // "istio_legacy"
  const char* whose;  // as `show` says it
  void (*make)(const Namespace& where);
  const char* backend;  // that holds the same if it is asked for these rules; nullptr: none does
};
[[nodiscard]] const std::vector<Agent>& agents();

// All rules, without counters, and policy rules and routes of both families.
[[nodiscard]] std::string everything(const Namespace& where);

}  // namespace sidetrack::netns
