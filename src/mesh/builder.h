// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "mesh/rule_words.h"
#include "model/config.h"
#include "model/routing.h"

namespace sidetrack {

// What the steps of the plan share: the input, and the rules so far.
class Builder {
 public:
  Builder(const Config& asked, const HostFacts& host) : config(asked), facts(host) {}

  const Config& config;
  const HostFacts& facts;

  // -A CHAIN, to each of `families` that the pod has. A rule with addresses goes to their family alone.
  void append(Families families, Table table, const char* chain, std::vector<Match> matches, Target target,
              Reason reason) {
    add({families, table, chain, std::move(matches), std::move(target), std::move(reason), {}});
  }
  void append(Table table, const char* chain, std::vector<Match> matches, Target target, Reason reason) {
    append(facts.families, table, chain, std::move(matches), std::move(target), std::move(reason));
  }
  // -I CHAIN PLACE
  void insert(Families families, Table table, const char* chain, unsigned place, std::vector<Match> matches,
              Target target, Reason reason) {
    add({families, table, chain, std::move(matches), std::move(target), std::move(reason), place});
  }

  // LO: what counts as loopback.
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

 private:
  void add(Rule rule) {
    rule.families = rule.families & facts.families;
    if (!rule.families.empty()) ruleset.rules.push_back(std::move(rule));
  }
};

// The steps, one function each, in the files named after them; the numbers are those of the reference's list of rules.
void excluded_interfaces(Builder& build);       // 1
void virtual_interfaces(Builder& build);        // 2
void drop_invalid(Builder& build);              // 3
void redirect_chains(Builder& build);           // 4
void inbound(Builder& build);                   // 5
void output_jump(Builder& build);               // 6
void outbound_excluded_ports(Builder& build);   // 7
void passthrough_return(Builder& build);        // 8
void proxy_owned(Builder& build);               // 9, 10
void owner_groups(Builder& build);              // 11
void dns(Builder& build);                       // 12
void loopback_return(Builder& build);           // 13
void outbound_excluded_ranges(Builder& build);  // 14
void outbound_included_ports(Builder& build);   // 15
void outbound_included_ranges(Builder& build);  // 16
void tproxy_marks(Builder& build);              // 17

}  // namespace sidetrack
