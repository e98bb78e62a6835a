// SPDX-License-Identifier: GPL-2.0-or-later
// What rules need beside them: policy rules, routes and addresses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/address.h"
#include "pod/policy_rule.h"
#include "pod/route.h"

namespace sidetrack {

// What a plan asks for, or what is there in the same form: as fwmark_rule() and local_default() make it.
struct Routing {
  std::vector<PolicyRule> policy_rules;  // unless before_others: one of another program is asked first
  std::vector<Route> local_routes;
  std::vector<Address> loopback_addresses;  // ip addr add ADDRESS dev lo, as a single host
  friend bool operator==(const Routing&, const Routing&) = default;
};

// Tells whether any of it is that of an ambient pod.
[[nodiscard]] bool is_of_ambient(const Routing& routing);

// Returns the same as made by Sidetrack.
[[nodiscard]] Routing without_origin(Routing routing);

// Returns the commands of ip(8) that add them, a line each, or that `del` them.
[[nodiscard]] std::vector<std::string> ip_commands(const Routing& routing, std::string_view verb = "add");

}  // namespace sidetrack
