// SPDX-License-Identifier: GPL-2.0-or-later
// The policy rules, local default routes and addresses of lo that are there, whoever made them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "backend/routes/netlink.h"
#include "sidetrack/plan.h"

namespace sidetrack::routes {

inline constexpr std::uint32_t loopback_index = 1;  // LOOPBACK_IFINDEX: lo is the first interface of every namespace

// AF_INET, AF_INET6
[[nodiscard]] std::optional<Family> family_of(unsigned domain);

// ip rule add fwmark MARK lookup TABLE, whoever made it.
struct LiveRule {
  PolicyRule rule;
  std::uint32_t priority = 0;
  std::uint8_t protocol = 0;
};

// ip route add local default dev lo table TABLE, whoever made it.
struct LiveRoute {
  LocalRoute route;
  std::uint8_t protocol = 0;
};

struct Everything {
  std::vector<LiveRule> rules;
  std::vector<LiveRoute> routes;
  std::vector<Address> addresses;  // of lo, single hosts

  [[nodiscard]] bool holds(const PolicyRule& rule) const {
    return std::ranges::find(rules, rule, &LiveRule::rule) != rules.end();
  }
  [[nodiscard]] bool holds(const LocalRoute& route) const {
    return std::ranges::find(routes, route, &LiveRoute::route) != routes.end();
  }
  [[nodiscard]] bool holds(const Address& address) const {
    return std::ranges::find(addresses, address) != addresses.end();
  }
};

[[nodiscard]] Everything list_everything(Socket& socket);

}  // namespace sidetrack::routes
