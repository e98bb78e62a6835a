// SPDX-License-Identifier: GPL-2.0-or-later
// The rules of Istio, each once: the plan builds its rules from these rows, and rules that are read are compared with
// them. A new rule is a MeshRule, a row in catalogue.cc, and a call of Builder::add in a step of the plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rule/ruleset.h"

namespace sidetrack {

enum class MeshRule : std::uint8_t {
  none,
  // interfaces that are left alone, and those of virtual machines
  excluded_interface_in,
  excluded_interface_out,
  virtual_machine_return,
  virtual_machine_outbound,
  // --drop-invalid
  invalid_jump,
  invalid_drop,
  // where redirection ends
  tunnel_port,
  outbound_listener,
  inbound_listener,
  tproxy_listener,
  divert_mark,
  divert_accept,
  // inbound
  inbound_jump,
  inbound_excluded_range,
  inbound_excluded_port,
  inbound_redirect,
  inbound_established,
  inbound_tproxy,
  // outbound
  outbound_jump,
  outbound_excluded_port,
  outbound_passthrough,
  proxy_to_itself,
  app_to_itself,
  proxy_or_group_return,
  proxy_return,
  group_return,
  only_groups,
  outbound_excluded_owner,
  outbound_excluded_owner_port,
  outbound_bypassing_cgroup,
  // DNS
  dns_zone_jump,
  dns_jump,
  dns_redirect,
  dns_proxy_query,
  dns_proxy_answer,
  dns_proxy_return,
  dns_other_groups,
  dns_excluded_over_lo,
  dns_excluded_query,
  dns_answer_jump,
  dns_query,
  dns_answer,
  dns_forwarded_query,
  dns_source,
  // outbound, after DNS
  loopback_return,
  outbound_excluded_range,
  outbound_included_port,
  outbound_included_range,
  own_address_redirect,
  // the marks of TPROXY
  tproxy_save_mark,
  tproxy_keep_mark,
  tproxy_mark_proxy,
  tproxy_restore_mark,
  tproxy_return,
  tproxy_passthrough,
  tproxy_app_to_itself,
  // --capture-udp
  inbound_udp_jump,
  inbound_udp_over_lo,
  inbound_udp_answer,
  inbound_udp_tproxy,
  // IPv6 where Istio up to 1.4 does not capture it
  ipv6_established,
  ipv6_loopback,
  ipv6_refused,
  // of Istio's agent, on the node of ambient pods
  host_probe_jump,
  host_probe_source,
  // ambient pods
  ambient_inbound_jump,
  ambient_mark_connection,
  ambient_restore_mark,
  ambient_virtual_machine_redirect,
  ambient_virtual_machine_return,
  ambient_probe,
  ambient_probe_answer,
  ambient_inbound,
  ambient_over_lo,
  ambient_established,
  ambient_dns_redirect,
  ambient_answer,
  ambient_app_to_itself,
  ambient_outbound,
  ambient_dns_query,
  ambient_dns_answer,
  ambient_dns_forwarded_query,
};

// Of the node, not of a pod.
[[nodiscard]] constexpr bool is_of_host(MeshRule rule) {
  return rule == MeshRule::host_probe_jump || rule == MeshRule::host_probe_source;
}

// A match of a row, and what of it is left open. A row has at most one open match of a kind.
enum class Placeholder : std::uint8_t {
  none,       // nothing
  any,        // the value
  any_owner,  // the value, and whether it is a uid or a gid
  usual,      // the value; but a rule is known by the usual values alone, of which it has one
  each,       // there is one such match for each value
};
struct RowMatch {
  template <typename M>
  RowMatch(M of, Placeholder open = Placeholder::none) : match(std::move(of)), placeholder(open) {}
  Match match;
  Placeholder placeholder;
};

// The words of the command line that ask for a rule: an option and its values. String literals: nothing is copied.
struct FlagText {
  FlagText(const char* name, const char* of = "", const char* written_between = " ")
      : option(name), values(of), between(written_between) {}
  const char* option;
  const char* values;
  const char* between;  // "=" of a variable of the environment
};

// The texts are string literals.
struct Row {
  MeshRule id;
  Table table;  // where the plan writes it; a rule is known in any
  const char* chain;
  std::vector<RowMatch> matches;  // in any order
  Target target;                  // a port or mark of 0 is left open, and so is a translation to no address
  // Texts with the values of the rule: {interface}, {port}, {range}, {address} ("any server" without one), {owner},
  // {owner_flag} (-u or -g), {id}, {mark}, {protocol}, {probe_flag} (--probe-address or --probe-address6); {to}: the
  // port, mark or address of the target.
  FlagText flag;
  const char* sentence;
  std::optional<unsigned> insert_at{};
};

// Of rules that several rows fit, the first row says what they are.
[[nodiscard]] const std::vector<Row>& catalogue();

// What a rule has instead of what its row says. The target must be given if the row leaves it open.
struct RowOverrides {
  std::optional<Target> target{};
  std::optional<Table> table{};
  const char* flag = nullptr;
  std::optional<Families> families{};  // both; of a rule with addresses always theirs
};

// The mark of what the proxy sends to this pod's own address, over lo: the one kind of traffic on lo that is inbound.
// Host byte order. Istio, tools/istio-iptables/pkg/constants/constants.go: OutboundMark.
inline constexpr std::uint32_t outbound_mark = 1338;

// The rule of the first row of that id whose open matches are those of `values`, by their kind; a value for a match
// that is not open, as the protocol, chooses the row that has it. Throws std::logic_error if there is none.
[[nodiscard]] Rule instantiate(MeshRule id, const std::vector<Match>& values, const RowOverrides& overrides = {});

// The first row that a rule is of, in whatever table; nullptr: it is none of Istio's.
[[nodiscard]] const Row* row_of(const Rule& rule);
[[nodiscard]] bool is_of(const Rule& rule, const Row& row);
// Whether it is of a row of that id.
[[nodiscard]] bool is_of(const Rule& rule, MeshRule id);
// Whether it is one of an ambient pod; the jump to ISTIO_OUTPUT is of both kinds of pods, and counts as none.
[[nodiscard]] bool is_of_ambient(MeshRule id);
// Of that row; none if it is none of Istio's.
[[nodiscard]] MeshRule kind_of(const Rule& rule);

// Returns the first match of this kind; nullptr: the rule has none.
template <typename Kind>
[[nodiscard]] const Kind* find_match(const Rule& rule) {
  for (const Match& match : rule.matches) {
    if (const auto* found = std::get_if<Kind>(&match)) return found;
  }
  return nullptr;
}

// Why a rule is there.
struct Reason {
  std::string option;    // that asked for it: "-d"; empty if it is always there
  std::string values;    // of the option: "15020,15090"
  std::string flag;      // both, as on the command line: "-d 15020,15090"
  std::string sentence;  // what it does: "inbound to port 15020, 15090 is left to the app"
  MeshRule rule{};       // which of Istio's rules it is; none: not known
};
// The texts of a row with the values of a rule that is of it.
[[nodiscard]] Reason reason_of(const Row& row, const Rule& rule);
// Those of the row that it was made of, or else the comment that it has.
[[nodiscard]] Reason reason_of(const Rule& rule);

}  // namespace sidetrack
