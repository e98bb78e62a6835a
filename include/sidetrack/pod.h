// SPDX-License-Identifier: GPL-2.0-or-later
// A pod's interfaces and routes, as far as they decide about where a packet goes.
#pragma once

#include <string>
#include <vector>

#include "sidetrack/address.h"
#include "sidetrack/plan.h"

namespace sidetrack {

struct InterfaceAddress {
  Address address;
  int prefix_length = 32;
};

struct Interface {
  std::string name;
  std::vector<InterfaceAddress> addresses;  // in the order of the kernel: REDIRECT takes the first
};

// ip route add TO dev DEVICE: an address range that is a CIDR.
struct NetworkRoute {
  AddressRange to;
  std::string device;
};

struct PodView {
  std::vector<Interface> interfaces;  // lo is one of them
  std::vector<NetworkRoute> routes;   // of table main; of two to the same range the first counts
  std::vector<PolicyRule> policy_rules;
  std::vector<LocalRoute> local_routes;
  // What the kernel chooses a source port from: net.ipv4.ip_local_port_range, for IPv6, too. Others' hosts are taken to
  // be alike.
  PortRange chosen_ports{32768, 60999};
};

// The network namespace that this process is in. Throws Error (failed) if the kernel refuses the listing.
[[nodiscard]] PodView read_pod();

// For a plan without a pod: lo, and eth0 with the addresses that are set aside for documentation (192.0.2.2/24,
// 2001:db8::2/64) and the default route; interfaces that the rules name; policy rules, routes and addresses as planned.
[[nodiscard]] PodView assumed_pod(const Plan& plan);

}  // namespace sidetrack
