// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/istio_rules.h"

#include <algorithm>
#include <utility>

#include "mesh/catalogue.h"
#include "mesh/describe.h"
#include "mesh/ownership.h"

namespace sidetrack {
namespace {

// Istio's own nftables mode has one table for each of iptables', and so has its agent for ambient pods.
constexpr std::string_view own_tables[] = {own_nft_table,      "istio-proxy-raw",   "istio-proxy-mangle",
                                           "istio-proxy-nat",  "istio-ambient-raw", "istio-ambient-mangle",
                                           "istio-ambient-nat"};

RuleNotes notes(const Rule& rule) {
  using enum MeshRule;
  static constexpr std::pair<MeshRule, const char*> sets[] = {
      {outbound_excluded_range, "excluded-ranges"},
      {outbound_included_range, "included-ranges"},
      {virtual_machine_outbound, "virtual-machine-ranges"},
      {inbound_jump, "included-inbound-ranges"},
      {inbound_excluded_range, "excluded-inbound-ranges"},
      {inbound_redirect, "inbound-ports"},
      {inbound_established, "inbound-ports"},
      {inbound_tproxy, "inbound-ports"},
      {inbound_excluded_port, "excluded-inbound-ports"},
      {outbound_included_port, "outbound-ports"},
      {outbound_excluded_port, "excluded-outbound-ports"},
      {outbound_excluded_owner, "excluded"},
      {outbound_excluded_owner_port, "excluded-outbound-ports"},
      {dns_excluded_over_lo, "excluded"},
      {dns_excluded_query, "excluded"},
      {inbound_udp_tproxy, "inbound-udp-ports"},
      {proxy_to_itself, "proxy"},
      {proxy_return, "proxy"},
      {tproxy_mark_proxy, "proxy"},
  };
  Reason reason = reason_of(rule);
  const auto* named = std::ranges::find(sets, rule.origin.rule, &std::pair<MeshRule, const char*>::first);
  return {std::move(reason.flag), std::move(reason.sentence), named == std::end(sets) ? nullptr : named->second};
}

}  // namespace

bool came_by_insert(const Rule& rule) {
  return std::ranges::any_of(
      catalogue(), [&](const Row& row) { return row.insert_at && row.table == rule.table && is_of(rule, row); });
}

const MeshRules istio_rules{.name = {},
                            .tables = own_tables,
                            .mark_ours = [](const MeshRules&, auto& chains) { mark_ours(chains); },
                            .has_chain = [](const MeshRules&, std::string_view name) { return is_istio_chain(name); },
                            .has_rule = is_of_istio,
                            .iptables_name = in_iptables_names,
                            .came_by_insert = came_by_insert,
                            .leave_to_agents = leave_to_agents,
                            .notes = notes};

}  // namespace sidetrack
