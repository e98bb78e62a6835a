// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/address.h"

namespace sidetrack {

struct InterfaceAddress {
  Address address;
  int prefix_length = 32;
  bool deprecated = false;  // not for new connections (ip address change … preferred_lft 0)
  // Of IPv4 (ip address add … scope link): who may be told of it. <linux/rtnetlink.h>: rt_scope_t; 0 is universe.
  std::uint8_t scope = 0;
  bool is_local = true;          // false: the kernel's route was deleted (ip route del local ADDRESS table local)
  bool network_is_local = true;  // likewise of its network, of IPv4 on lo (127.0.0.0/8); else as is_local
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
  // net.ipv4.conf.NAME.*, or that of `all` if it is larger. IPv6 has none of these four.
  RpFilter rp_filter = RpFilter::off;  // rp_filter
  // src_valid_mark: what comes in is dropped if its source, looked up with the mark that it has by then, is local
  // (IN_DEV_SRC_VMARK in __fib_validate_source).
  bool src_valid_mark = false;
  bool route_localnet = false;  // route_localnet: 127.0.0.0/8 comes in and goes out by it
  bool accept_local = false;    // accept_local: what comes in may be from one of the pod's own addresses
  // net.ipv6.conf.NAME.disable_ipv6: what comes in or goes out by it is dropped (ip6_rcv_core, ip6_output). Of lo, so
  // is what is sent to another address of the pod.
  bool disable_ipv6 = false;
  // Of a bridge: net.bridge.bridge-nf-call-iptables, -ip6tables, or its own nf_call_iptables. PREROUTING is called
  // while a frame passes the bridge, and a socket that TPROXY assigns there is lost.
  Families rules_of_frames{};
  // The names of those that carry its packets: the ports of a bridge, what a macvlan, a VLAN or a bond lies upon.
  std::vector<std::string> lower{};
  friend bool operator==(const Interface&, const Interface&) = default;
};

}  // namespace sidetrack
