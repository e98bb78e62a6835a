// SPDX-License-Identifier: GPL-2.0-or-later
// What rules need beside them: policy rules, routes, addresses, and sets of addresses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/address.h"

namespace sidetrack {

// ip rule add fwmark MARK lookup TABLE
struct PolicyRule {
  Family family = Family::ipv4;
  std::uint32_t mark = 0;
  std::uint32_t table = 0;
  // Nothing: it stands before every rule of another program that could decide about such packets, as one that is added
  // does. Else one of those is asked before it.
  std::optional<std::uint32_t> after_others{};
  friend bool operator==(const PolicyRule&, const PolicyRule&) = default;
};

// ip route add local default dev lo table TABLE
struct LocalRoute {
  Family family = Family::ipv4;
  std::uint32_t table = 0;
  friend bool operator==(const LocalRoute&, const LocalRoute&) = default;
};

// ipset create NAME hash:ip family inet comment
struct AddressSet {
  std::string name;
  Family family = Family::ipv4;
  friend bool operator==(const AddressSet&, const AddressSet&) = default;
};

// ipset add NAME ADDRESS
struct SetEntry {
  std::string set;
  Address address;
  friend bool operator==(const SetEntry&, const SetEntry&) = default;
};

// What rules need beside them.
struct Routing {
  std::vector<PolicyRule> policy_rules;
  std::vector<LocalRoute> local_routes;
  std::vector<Address> loopback_addresses;  // ip addr add ADDRESS dev lo, as a single host
  // Of `host-probes` alone.
  std::vector<AddressSet> sets{};
  std::vector<SetEntry> set_entries{};
  friend bool operator==(const Routing&, const Routing&) = default;
};

// The commands of ip(8) and ipset(8) that add them, a line each.
[[nodiscard]] std::vector<std::string> ip_commands(const Routing& routing);

}  // namespace sidetrack
