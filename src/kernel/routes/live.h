// SPDX-License-Identifier: GPL-2.0-or-later
// The policy rules, routes and addresses of lo that are there, whichever program made them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kernel/routes.h"
#include "kernel/routes/rtnetlink.h"
#include "pod/pod_view.h"

namespace sidetrack::routes {

// Our tag of a policy rule (FRA_PROTOCOL, since Linux 4.17) or a route (rtm_protocol). The kernel gives no meaning to
// numbers from 4 up. This one is in neither <linux/rtnetlink.h> nor iproute2's /etc/iproute2/rt_protos, nor among
// those of FRRouting (186 to 198). `ip rule` and `ip route` show it as "proto 137".
inline constexpr std::uint8_t our_protocol = 137;

inline constexpr std::uint32_t loopback_index = 1;  // LOOPBACK_IFINDEX: lo is the first interface of every namespace

struct ListedRule {
  PolicyRule rule;
  std::uint8_t protocol = 0;
  std::optional<PolicyRule> planned{};  // as a Routing has it; nothing: no plan could ask for it
};

struct ListedRoute {
  Route route;               // without the name of its device
  std::uint32_t device = 0;  // its number, of several the first one
  std::vector<std::uint32_t> other_devices{};
  std::uint32_t metric = 0;
  std::uint8_t protocol = 0;
  std::optional<Route> planned{};  // as a Routing has it; nothing: no plan could ask for it
};

// Says by what else than the tag a rule and its route are ours.
struct Claims {
  AgentRules agent_rules = AgentRules::foreign;
  std::vector<std::uint32_t> marks{};  // of Istio's rules with TPROXY: the pair with such a mark is Istio's, too
};

struct Everything {
  std::vector<ListedRule> rules;    // in the order in which they are asked
  std::vector<ListedRoute> routes;  // those with the lowest metric first
  std::vector<ListedAddress> addresses;
  bool loopback_is_up = true;
  Claims claims;
  std::vector<Address> broadcasts;  // that have a route of type broadcast

  // Returns the addresses of lo that are single hosts.
  [[nodiscard]] std::vector<Address> loopback_hosts() const;

  // Sets what only the whole listing tells of a rule or a route: its origin and `planned`. What an agent made is ours
  // only if it is claimed.
  void relate();

  [[nodiscard]] bool holds(const PolicyRule& rule) const;
  [[nodiscard]] bool holds(const Route& route) const;
  [[nodiscard]] bool holds(const Address& address) const;
};

[[nodiscard]] Everything list_everything(netlink::Socket& socket, const Claims& claims = {});

// Reads PodView::tables_are_apart from what /proc/net/fib_trie holds.
[[nodiscard]] std::optional<bool> tables_are_apart(std::string_view tables);

// Returns what read_pod() does.
[[nodiscard]] PodView pod_of(netlink::Socket& socket, const Claims& claims = {});

// Tells whether a mark decides about more than the packet that has it: net.ipv4.conf.all.src_valid_mark or
// net.ipv4.tcp_fwmark_accept is set; see PodView.
[[nodiscard]] bool marks_reach_further();
// Tells whether packets that are marked, or given to a socket by TPROXY, fare otherwise on any interface: by
// net.ipv4.conf.NAME.src_valid_mark, or on a bridge that calls the rules.
[[nodiscard]] bool interfaces_matter_to_marked(netlink::Socket& socket);

}  // namespace sidetrack::routes
