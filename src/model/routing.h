// SPDX-License-Identifier: GPL-2.0-or-later
// What rules need beside them: policy rules, routes and addresses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/address.h"

namespace sidetrack {

// ip rule add fwmark MARK[/MASK] [pref PREFERENCE] lookup TABLE
struct PolicyRule {
  Family family = Family::ipv4;
  std::uint32_t mark = 0;
  std::uint32_t table = 0;
  // Nothing: it stands before every rule of another program that could decide about such packets, as one that is added
  // does. Else one of those is asked before it.
  std::optional<std::uint32_t> after_others{};
  std::uint32_t mask = 0xffffffff;
  // The latest place that was asked for. It does not count when rules are compared: what counts is after_others.
  std::optional<std::uint32_t> preference{};
  // An agent of the node made it, of an ambient pod, and it counts as ours: it has no tag of ours.
  bool by_agent = false;
  friend bool operator==(const PolicyRule& a, const PolicyRule& b) {
    return a.family == b.family && a.mark == b.mark && a.mask == b.mask && a.table == b.table &&
           a.after_others == b.after_others && a.by_agent == b.by_agent;
  }
};

// ip route add local default dev lo table TABLE
struct LocalRoute {
  Family family = Family::ipv4;
  std::uint32_t table = 0;
  bool by_agent = false;  // as PolicyRule's
  friend bool operator==(const LocalRoute&, const LocalRoute&) = default;
};

// What rules need beside them.
struct Routing {
  std::vector<PolicyRule> policy_rules;
  std::vector<LocalRoute> local_routes;
  std::vector<Address> loopback_addresses;  // ip addr add ADDRESS dev lo, as a single host
  friend bool operator==(const Routing&, const Routing&) = default;
};

// The constants of ambient pods, in host byte order. Istio, cni/pkg/config/config.go: InpodMark, InpodTProxyMark (with
// their masks) and RouteTableInbound; cni/pkg/iptables/iptables_linux.go: the preference of the policy rule.
inline constexpr std::uint32_t ztunnel_mark = 0x539;  // of ztunnel's sockets
inline constexpr std::uint32_t ztunnel_connection_mark =
    0x111;                                            // of connections that it opened: replies reach it by it
inline constexpr std::uint32_t ztunnel_mask = 0xfff;  // of both
inline constexpr std::uint32_t ztunnel_route_table = 100;
inline constexpr std::uint32_t ztunnel_preference = 32764;

// Whether it is that of an ambient pod, whoever made it.
[[nodiscard]] bool is_of_ambient(const PolicyRule& rule);

// Whether any of it is.
[[nodiscard]] bool is_of_ambient(const Routing& routing);

// The same, whoever made it.
[[nodiscard]] Routing without_origin(Routing routing);

// "1337", "0x111/0xfff"
[[nodiscard]] std::string mark_words(const PolicyRule& rule);

// The commands of ip(8) that add them, a line each, or that `del` them.
[[nodiscard]] std::vector<std::string> ip_commands(const Routing& routing, std::string_view verb = "add");

}  // namespace sidetrack
