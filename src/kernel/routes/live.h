// SPDX-License-Identifier: GPL-2.0-or-later
// The policy rules, routes and addresses of lo that are there, whichever program made them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernel/routes.h"
#include "kernel/routes/rtnetlink.h"
#include "model/pod.h"
#include "model/routing.h"

namespace sidetrack::routes {

// Who made a policy rule or a route: FRA_PROTOCOL (kernel 4.17) and rtm_protocol. The kernel gives no meaning to
// numbers from 4 up. This one is in neither <linux/rtnetlink.h> nor iproute2's /etc/iproute2/rt_protos, nor among
// those of FRRouting (186 to 198). `ip rule` and `ip route` show it as "proto 137".
inline constexpr std::uint8_t our_protocol = 137;

inline constexpr std::uint32_t loopback_index = 1;  // LOOPBACK_IFINDEX: lo is the first interface of every namespace

struct ListedRule {
  RoutingRule rule;
  std::uint8_t protocol = 0;
  // Its value, if it is just `ip rule add fwmark MARK[/MASK] lookup TABLE`.
  [[nodiscard]] std::optional<PolicyRule> marked() const;
};

struct ListedRoute {
  NetworkRoute route;        // without the name of its device
  std::uint32_t device = 0;  // its number, of several the first one
  std::vector<std::uint32_t> other_devices{};
  std::uint32_t metric = 0;
  std::uint8_t protocol = 0;
  // Its value, if it is just `ip route add local default dev lo table TABLE`.
  [[nodiscard]] std::optional<LocalRoute> local_default() const;
};

struct Everything {
  std::vector<ListedRule> rules;    // in the order in which they are asked
  std::vector<ListedRoute> routes;  // those with the lowest metric first
  std::vector<ListedAddress> addresses;
  bool loopback_is_up = true;
  AgentRules agent_rules = AgentRules::foreign;
  std::vector<Address> broadcasts;  // that have a route of type broadcast

  // Those of lo that are single hosts.
  [[nodiscard]] std::vector<Address> loopback_hosts() const;

  // Whether Sidetrack or Istio made it; of an ambient pod's, whether Sidetrack did, or theirs are claimed, too.
  [[nodiscard]] bool is_ours(const ListedRule& rule) const;
  [[nodiscard]] bool is_ours(const ListedRoute& route) const;

  // The value of rules[i], with what model/routing.h says of those that come after others or that an agent made.
  [[nodiscard]] std::optional<PolicyRule> marked(std::size_t i) const;
  [[nodiscard]] std::optional<LocalRoute> local_default(const ListedRoute& route) const;

  // Whether the table that it looks up can decide.
  [[nodiscard]] bool has_routes(const ListedRule& rule) const;

  [[nodiscard]] bool holds(const PolicyRule& rule) const;
  [[nodiscard]] bool holds(const LocalRoute& route) const;
  [[nodiscard]] bool holds(const Address& address) const;
};

[[nodiscard]] Everything list_everything(netlink::Socket& socket, AgentRules agent_rules = AgentRules::foreign);

// What read_pod() gives.
[[nodiscard]] PodView pod_of(netlink::Socket& socket, AgentRules agent_rules = AgentRules::foreign);

// Whether a mark decides about more than the packet that has it: net.ipv4.conf.all.src_valid_mark or
// net.ipv4.tcp_fwmark_accept is set; see PodView.
[[nodiscard]] bool marks_reach_further();
// Whether packets that are marked, or given to a socket by TPROXY, fare otherwise on any interface: by
// net.ipv4.conf.NAME.src_valid_mark, or on a bridge that calls the rules.
[[nodiscard]] bool interfaces_matter_to_marked(netlink::Socket& socket);

}  // namespace sidetrack::routes
