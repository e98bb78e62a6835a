// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
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
  std::vector<Route> routes;           // those with the lowest metric first, as the kernel asks them
  std::vector<std::uint32_t> metrics;  // of each of them
  std::vector<PolicyRule> policy_rules;
};

}  // namespace sidetrack
