// SPDX-License-Identifier: GPL-2.0-or-later
// A pod's interfaces and routes, as far as they decide about where a packet goes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/address.h"
#include "model/range.h"
#include "pod/interface.h"
#include "pod/policy_rule.h"
#include "pod/route.h"
#include "pod/routing.h"

namespace sidetrack {

struct PodView {
  std::vector<Interface> interfaces;  // lo is one of them
  std::vector<Route> routes;          // of two to the same range the first counts; not those of the own addresses
  std::vector<PolicyRule> rules = default_rules();  // in the kernel's order
  // What the kernel chooses a source port from: net.ipv4.ip_local_port_range, for IPv6, too. Others' hosts are taken to
  // be alike.
  PortRange ephemeral_ports{32768, 60999};
  // net.ipv4.tcp_fwmark_accept, for IPv6, too: an accepted connection has the mark that its first packet has at the
  // end, unless its listener has one (inet_request_mark).
  bool tcp_fwmark_accept = false;
  // IPv4 looks up tables local and main apart, as it does once a policy rule was added or deleted (fib_unmerge);
  // nothing if that is not known.
  std::optional<bool> tables_are_apart{};
  bool first_is_broadcast = false;  // the first address of a network, as on Linux before 5.14
  Families fwmark_reflect{};  // net.FAMILY.fwmark_reflect: what the kernel itself answers has the mark of the request
  Families ignored_echos{};  // net.ipv4.icmp_echo_ignore_all, net.ipv6.icmp.echo_ignore_all: the kernel answers no ping
  friend bool operator==(const PodView&, const PodView&) = default;

  // Finds it by its name; nullptr if the pod has none of that name.
  [[nodiscard]] const Interface* interface(const std::string& name) const;
  [[nodiscard]] Interface* interface(const std::string& name);

  // Returns its addresses, and tells whether one is of the family: but for those of lo and of single links.
  [[nodiscard]] std::vector<Address> addresses() const;
  [[nodiscard]] bool has_address(Family family) const;

  // Tells whether IPv4 looks them up as one, by the longest prefix. Returns nothing if that is not known.
  [[nodiscard]] std::optional<bool> has_one_table() const;

  // Adds the rule as the kernel does: behind those of its family that have its priority.
  void insert(const PolicyRule& rule);
};

// Returns the policy rules that ask for the mark, and the local routes of the tables that they look up; for 0 nothing.
[[nodiscard]] Routing routing_of_mark(const PodView& pod, std::uint32_t mark);

// Returns the pod, and as often as it takes with the next ones of all that routes have as their first hop.
[[nodiscard]] std::vector<PodView> by_each_hop(const PodView& pod);

// Adds it as the kernel would.
void add_routing(PodView& pod, const Routing& added);
// Removes the policy rules that are ours.
void drop_our_rules(PodView& pod);
// Returns the pod with it in the place of what is ours.
[[nodiscard]] PodView with_routing(PodView pod, const Routing& routing);

}  // namespace sidetrack
