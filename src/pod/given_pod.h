// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <vector>

#include "pod/interface.h"
#include "pod/routing.h"

namespace sidetrack {

inline constexpr const char* usual_interface = "eth0";

// Holds what the user says of a pod that cannot be reached.
struct GivenPod {
  struct Own {
    std::string interface = usual_interface;
    InterfaceAddress address;
  };
  std::vector<Own> addresses;
  std::vector<Route> routes;
  std::vector<PolicyRule> policy_rules;
};

}  // namespace sidetrack
