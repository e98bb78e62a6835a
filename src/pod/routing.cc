// SPDX-License-Identifier: GPL-2.0-or-later
#include "pod/routing.h"

#include <fmt/format.h>

#include <algorithm>

namespace sidetrack {

bool is_of_ambient(const Routing& routing) {
  const auto is_of = [](const auto& each) { return is_of_ambient(each); };
  return std::ranges::any_of(routing.policy_rules, is_of) || std::ranges::any_of(routing.local_routes, is_of);
}

Routing without_origin(Routing routing) {
  for (PolicyRule& rule : routing.policy_rules) rule.origin = RoutingOrigin::ours;
  for (Route& route : routing.local_routes) route.origin = RoutingOrigin::ours;
  return routing;
}

std::vector<std::string> ip_commands(const Routing& routing, std::string_view verb) {
  std::vector<std::string> lines;
  const auto add = [&](Family family, const char* object, const std::string& arguments) {
    lines.push_back(fmt::format("ip{} {} {} {}", family == Family::ipv6 ? " -6" : "", object, verb, arguments));
  };
  for (const PolicyRule& rule : routing.policy_rules) {
    add(rule.family, "rule", (rule.priority ? fmt::format("pref {} ", *rule.priority) : "") + ip_arguments(rule));
  }
  for (const Route& route : routing.local_routes) add(route.family(), "route", ip_arguments(route));
  for (const Address& address : routing.loopback_addresses) {
    add(address.family, "addr", AddressRange::single(address).text() + " dev lo");
  }
  return lines;
}

}  // namespace sidetrack
