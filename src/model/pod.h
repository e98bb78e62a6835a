// SPDX-License-Identifier: GPL-2.0-or-later
// A pod's interfaces and routes, as far as they decide about where a packet goes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/address.h"
#include "model/range.h"
#include "model/routing.h"

namespace sidetrack {

struct InterfaceAddress {
  Address address;
  int prefix_length = 32;
  bool deprecated = false;  // not for new connections (ip address change … preferred_lft 0)
  // Of IPv4 (ip address add … scope link): who may be told of it. <linux/rtnetlink.h>: rt_scope_t; 0 is universe.
  std::uint8_t scope = 0;
  bool is_local = true;  // false: the kernel's route was deleted (ip route del local ADDRESS table local)
  friend bool operator==(const InterfaceAddress&, const InterfaceAddress&) = default;
};

// net.ipv4.conf.*.rp_filter: what comes in is dropped if answers to its source would leave by another interface
// (strict), or if there is no route to it at all (loose).
enum class RpFilter : std::uint8_t { off, strict, loose };

struct Interface {
  std::string name;
  std::vector<InterfaceAddress> addresses;  // in the order of the kernel: REDIRECT takes the first
  bool up = true;
  bool is_bridge = false;
  // net.ipv4.conf.NAME.*, or that of `all` if it is larger. IPv6 has none of them.
  RpFilter rp_filter = RpFilter::off;  // rp_filter
  // src_valid_mark: what comes in is dropped if its source, looked up with the mark that it has by then, is local
  // (IN_DEV_SRC_VMARK in __fib_validate_source).
  bool src_valid_mark = false;
  bool route_localnet = false;  // route_localnet: 127.0.0.0/8 comes in and goes out by it
  bool accept_local = false;    // accept_local: what comes in may be from one of the pod's own addresses
  // Of a bridge: net.bridge.bridge-nf-call-iptables, -ip6tables, or its own nf_call_iptables. PREROUTING is called
  // while a frame passes the bridge, and a socket that TPROXY assigns there is lost.
  Families rules_of_frames{};
  // The names of those that carry its packets: the ports of a bridge, what a macvlan, a VLAN or a bond lies upon.
  std::vector<std::string> lower{};
  friend bool operator==(const Interface&, const Interface&) = default;
};

// <linux/rtnetlink.h>: RT_TABLE_LOCAL, RT_TABLE_MAIN, RT_TABLE_DEFAULT
inline constexpr std::uint32_t local_table = 255;
inline constexpr std::uint32_t main_table = 254;
inline constexpr std::uint32_t default_table = 253;

// ip route add [KIND] TO dev DEVICE table TABLE
struct NetworkRoute {
  enum class Kind : std::uint8_t {
    unicast,
    local,  // stays here
    blackhole,
    unreachable,
    prohibit,
    throw_,   // the next policy rule is asked
    unknown,  // asks for more than the destination
  };
  AddressRange to;  // a CIDR
  std::string device;
  Kind kind = Kind::unicast;
  std::uint32_t table = main_table;
  std::optional<Address> gateway{};
  std::optional<Address> source{};  // src: of what is sent by it
  // It has several next hops, of which each connection gets one: `device` is that of the first one, these are the rest.
  std::vector<std::string> other_devices{};
  // Returns whether one of its next hops is by this interface.
  [[nodiscard]] bool has_hop_by(const std::string& name) const {
    return device == name || std::ranges::find(other_devices, name) != other_devices.end();
  }
  friend bool operator==(const NetworkRoute&, const NetworkRoute&) = default;
};
[[nodiscard]] std::string ip_words(const NetworkRoute& route);  // "ip route local default dev lo table 133"

// ip rule: which packets look up which table. They are asked in the order of their priorities until one finds a route.
struct RoutingRule {
  enum class Action : std::uint8_t { lookup, blackhole, unreachable, prohibit, none, unknown };
  Family family = Family::ipv4;
  std::uint32_t priority = 0;
  Action action = Action::lookup;
  std::uint32_t table = 0;
  bool inverted = false;  // not
  std::optional<AddressRange> from;
  std::optional<AddressRange> to;
  std::uint32_t mark = 0;
  std::uint32_t mask = 0;         // 0: any mark
  std::string in;                 // iif; lo: what is sent here
  std::string out;                // oif: what the socket is bound to
  std::string more;               // further conditions, which are not followed: "uidrange 1000-1000"
  std::optional<int> suppressed;  // suppress_prefixlength: routes of this length or less do not count
  bool ours = false;
  friend bool operator==(const RoutingRule&, const RoutingRule&) = default;
};
[[nodiscard]] std::string ip_words(const RoutingRule& rule);    // "ip rule 100: from all fwmark 1 lookup 100"
[[nodiscard]] std::string conditions(const RoutingRule& rule);  // "fwmark 1337"; "from all" if there are none

// Those of a new network namespace.
[[nodiscard]] std::vector<RoutingRule> default_rules();

// Whether the rule could decide about packets that `marked` is there for, and take them elsewhere.
[[nodiscard]] bool may_divert(const RoutingRule& rule, const PolicyRule& marked);
// Whether `marked` has to stand before that rule. None can stand before one at 0: what is added comes after it, too.
[[nodiscard]] bool goes_before(const PolicyRule& marked, const RoutingRule& rule);
// The priority with which it is added: before the one of `other`, and no later than asked. Nothing: the kernel's
// choice.
[[nodiscard]] std::optional<std::uint32_t> place_before(const PolicyRule& rule, std::optional<std::uint32_t> other);

struct PodView;
// The pod, and as often as it takes with the next ones of all that routes have as their first hop.
[[nodiscard]] std::vector<PodView> by_each_hop(const PodView& pod);

struct PodView {
  std::vector<Interface> interfaces;  // lo is one of them
  std::vector<NetworkRoute> routes;   // of two to the same range the first counts; not those of the own addresses
  std::vector<RoutingRule> rules = default_rules();  // in the kernel's order
  // What the kernel chooses a source port from: net.ipv4.ip_local_port_range, for IPv6, too. Others' hosts are taken to
  // be alike.
  PortRange ephemeral_ports{32768, 60999};
  // net.ipv4.tcp_fwmark_accept, for IPv6, too: an accepted connection has the mark that its first packet has at the
  // end, unless its listener has one (inet_request_mark).
  bool tcp_fwmark_accept = false;
  bool first_is_broadcast = false;  // the first address of a network, as on Linux before 5.14
  Families fwmark_reflect{};  // net.FAMILY.fwmark_reflect: what the kernel itself answers has the mark of the request
  friend bool operator==(const PodView&, const PodView&) = default;

  // By its name; nullptr if the pod has none of that name.
  [[nodiscard]] const Interface* interface(const std::string& name) const;
  [[nodiscard]] Interface* interface(const std::string& name);

  // Adds the rule as the kernel does: behind those of its family that have its priority.
  void insert(const RoutingRule& rule);
};

// As the kernel would stand with `added` in it.
void add(PodView& pod, const Routing& added);
// Without the policy rules that are ours.
void drop_our_rules(PodView& pod);

}  // namespace sidetrack
