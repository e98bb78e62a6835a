// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <vector>

#include "mesh/catalogue.h"
#include "mesh/rule_words.h"
#include "model/config.h"
#include "model/ports.h"
#include "pod/routing.h"

namespace sidetrack {

// What the steps of the plan share: the input, and the rules so far.
class Builder {
 public:
  Builder(const Config& asked, const HostFacts& host) : config(asked), facts(host) {}

  const Config& config;
  const HostFacts& facts;

  // Adds the rule of a row of the catalogue, to each of its families that the pod has. Throws Error (usage) beyond
  // Config::most_rules.
  void add(MeshRule id, const std::vector<Match>& values = {}, const RowOverrides& overrides = {});

  // What counts as loopback.
  [[nodiscard]] AddressRange loopback(Family family) const;
  [[nodiscard]] bool tproxy() const { return config.mode == Mode::tproxy; }
  // The table that catches inbound traffic.
  [[nodiscard]] Table inbound_table() const { return tproxy() ? Table::mangle : Table::nat; }
  // The families whose DNS is captured: those with a known server, or all with --capture-all-dns.
  [[nodiscard]] Families dns_families() const;
  [[nodiscard]] bool captures_dns() const {
    return config.redirect_dns && (config.capture_all_dns || !facts.dns_servers.empty());
  }

  Ruleset ruleset;
};

// The steps, one function each, in the files named after them, in the order of the reference.
void excluded_interfaces(Builder& build);
void virtual_interfaces(Builder& build);
void drop_invalid(Builder& build);
void redirect_chains(Builder& build);
void inbound(Builder& build);
void output_jump(Builder& build);
void outbound_excluded_ports(Builder& build);
void passthrough_return(Builder& build);
void proxy_owned(Builder& build);
void owner_groups(Builder& build);
void outbound_excluded_owners(Builder& build);
void dns(Builder& build);
void loopback_return(Builder& build);
void outbound_excluded_ranges(Builder& build);
void outbound_included_ports(Builder& build);
void outbound_included_ranges(Builder& build);
void tproxy_marks(Builder& build);
void inbound_udp(Builder& build);

// All rules of an ambient pod.
void ambient(Builder& build);

}  // namespace sidetrack
