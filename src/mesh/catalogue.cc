// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <span>
#include <stdexcept>

#include "mesh/rule_words.h"
#include "model/list_text.h"
#include "model/ports.h"
#include "model/printable.h"

namespace sidetrack {
namespace {

using namespace words;

// The sets of ip_set in which Istio's agent keeps the addresses of the node's pods in ambient mode.
SetMatch in_probe_set(Family family) {
  return {End::destination,
          family == Family::ipv4 ? "istio-inpod-probes-v4" : "istio-inpod-probes-v6",
          unknown_set,
          {},
          false};
}

RowMatch any(Match match) { return {std::move(match), Placeholder::any}; }
RowMatch usual(Match match) { return {std::move(match), Placeholder::usual}; }

// One of each family.
std::vector<AddressRange> either(Address (*address)(Family)) {
  return {AddressRange::single(address(Family::ipv4)), AddressRange::single(address(Family::ipv6))};
}

// A match of a row that stands elsewhere: a list of them copies none.
struct MatchRef {
  MatchRef(const RowMatch& of) : match(&of) {}
  const RowMatch* match;
};

std::vector<Row> make_rows() {
  using enum MeshRule;
  using enum Table;
  const Target returns = Verdict::return_, accepts = Verdict::accept, drops = Verdict::drop;
  const Target redirects = Redirect{}, in_zone_1 = CtZone{1}, in_zone_2 = CtZone{2};
  const Target to_inbound = Jump{istio_inbound}, to_in_redirect = Jump{istio_in_redirect};
  const Target to_output = Jump{istio_output}, to_redirect = Jump{istio_redirect};
  const Target to_output_dns = Jump{istio_output_dns}, to_divert = Jump{istio_divert};

  const RowMatch tcp(words::tcp), udp(words::udp);
  const RowMatch dns = dport(dns_port), dns_answer_port = sport(dns_port), proxy_answers = sport(proxy_dns_port);
  const RowMatch over_lo = out("lo"), from_lo = in("lo"), not_over_lo = except(out("lo"));
  const RowMatch in_any = any(in(""));
  const RowMatch out_any = any(out(""));
  const RowMatch to = any(AddressMatch{End::destination, {}, false});
  const RowMatch not_to = any(AddressMatch{End::destination, {}, true});
  const RowMatch from = any(AddressMatch{End::source, {}, false});
  const RowMatch to_port = any(PortMatch{End::destination, {}, false});
  const RowMatch not_to_port = any(PortMatch{End::destination, {}, true});
  const RowMatch owned{OwnerMatch{}, Placeholder::any_owner};
  const RowMatch not_owned{except(OwnerMatch{}), Placeholder::any_owner};
  const RowMatch not_of_group(OwnerMatch{OwnerKind::gid, {}, true}, Placeholder::each);
  const RowMatch mark_any = any(MarkMatch{});
  const RowMatch from_passthrough = usual(AddressMatch{End::source, either(Address::passthrough), false});
  const RowMatch invalid = ctstate(ConntrackStateMatch::invalid);
  const RowMatch established = ctstate(ConntrackStateMatch::related | ConntrackStateMatch::established);

  const char* established_text = "packets of a connection that the proxy already has";
  const char* passthrough_text = "the proxy passes inbound traffic on to the app from {address}";
  const char* itself_text = "the proxy ({owner}) calling this pod's own address: inbound through the proxy";
  const char* app_text = "the app talking to itself (not {owner}) bypasses the proxy";
  const char* proxy_query_text = "the proxy's ({owner}) own queries are tracked apart, in zone 1";
  const char* proxy_answer_text = "the proxy's ({owner}) answers to the app are tracked in zone 2";
  const char* query_text = "the app's queries to {address} are tracked in zone 2";
  const char* excluded_query_text = "queries of {sender}, which bypass the proxy, are tracked as their answers: zone 1";
  const char* forwarded_query_text =
      "queries from {interface} to {address} are tracked in the zone of their answers, 1";
  const char* answer_text = "answers of {address} to the proxy belong to zone 1";

  std::vector<Row> rows;
  rows.reserve(100);
  const auto add = [&](MeshRule id, Table table, const char* chain, std::initializer_list<MatchRef> matches,
                       const Target& target, FlagText flag, const char* sentence,
                       std::optional<unsigned> insert_at = {}) {
    Row& row = rows.emplace_back(Row{id, table, chain, {}, target, flag, sentence, insert_at});
    row.matches.reserve(matches.size());
    for (const MatchRef each : matches) row.matches.push_back(*each.match);
  };
  add(excluded_interface_in, nat, prerouting, {in_any}, returns, {"-c", "{interface}"},
      "what comes in by {interface} is left alone");
  add(excluded_interface_out, nat, output, {out_any}, returns, {"-c", "{interface}"},
      "what goes out by {interface} is left alone");
  // Its rule is the same as that of an excluded interface.
  add(virtual_machine_return, nat, prerouting, {in_any}, returns, {"-k", "{interface}"},
      "what comes from the virtual machine behind {interface} is not inbound traffic", 1);
  add(virtual_machine_outbound, nat, prerouting, {in_any}, to_redirect, {"-k", "{interface}"},
      "what the virtual machine behind {interface} sends is outbound traffic", 1);
  add(virtual_machine_outbound, nat, prerouting, {in_any, to}, to_redirect, {"-k", "{interface}"},
      "what the virtual machine behind {interface} sends to {range} is outbound traffic", 1);

  add(invalid_jump, mangle, prerouting, {invalid}, Jump{istio_drop}, "--drop-invalid",
      "packets of unknown connections are dropped, so that the app does not send a RST");
  add(invalid_drop, mangle, istio_drop, {}, drops, "--drop-invalid", "dropped");

  add(tunnel_port, nat, istio_inbound, {tcp, usual(dport(15008))}, returns, {"-e", "{port}"},
      "the tunnel's port: the proxy listens there itself");
  add(outbound_listener, nat, istio_redirect, {tcp}, redirects, {"-p", "{to}"},
      "to the proxy's outbound listener, port {to}");
  add(inbound_listener, nat, istio_in_redirect, {tcp}, redirects, {"-z", "{to}"},
      "to the proxy's inbound listener, port {to}");
  add(tproxy_listener, mangle, istio_tproxy, {not_to, tcp}, Tproxy{}, {"-m", "TPROXY"},
      "to the proxy's transparent inbound listener, port {to}");
  add(divert_mark, mangle, istio_divert, {}, SetMark{}, {"-t", "{to}"},
      "marked, so that the policy route brings it to the proxy's open connection");
  add(divert_accept, mangle, istio_divert, {}, accepts, {"-m", "TPROXY"}, "accepted as marked");

  add(inbound_jump, nat, prerouting, {tcp}, to_inbound, "-b", "inbound TCP is checked");
  add(inbound_jump, nat, prerouting, {from, tcp}, to_inbound, {"--include-inbound-ranges", "{range}"},
      "inbound TCP from {range} is checked");
  add(inbound_excluded_range, nat, istio_inbound, {from, tcp}, returns, {"--exclude-inbound-ranges", "{range}"},
      "inbound from {range} reaches the app past the proxy");
  add(inbound_excluded_range, nat, istio_inbound, {tcp}, returns, {"--exclude-inbound-ranges", "{range}"},
      "inbound reaches the app past the proxy");
  add(inbound_excluded_port, nat, istio_inbound, {tcp, to_port}, returns, {"-d", "{port}"},
      "inbound to port {port} is left to the app");
  add(inbound_established, mangle, istio_inbound, {tcp, established}, to_divert, {"-b", "*"}, established_text);
  add(inbound_established, mangle, istio_inbound, {tcp, to_port, established}, to_divert, {"-b", "{port}"},
      established_text);
  // Istio 1.0 to 1.5
  const RowMatch of_socket = UnknownMatch{"-m socket"};
  add(inbound_established, mangle, istio_inbound, {tcp, of_socket}, to_divert, {"-b", "*"}, established_text);
  add(inbound_established, mangle, istio_inbound, {tcp, to_port, of_socket}, to_divert, {"-b", "{port}"},
      established_text);

  add(outbound_jump, nat, output, {}, to_output, "", "outbound traffic is checked");
  add(outbound_jump, nat, output, {tcp}, to_output, "", "outbound TCP is checked");  // Istio 1.1
  add(outbound_passthrough, nat, istio_output, {over_lo, from_passthrough}, returns, "", passthrough_text);
  add(proxy_to_itself, nat, istio_output, {over_lo, not_to, tcp, not_to_port, owned}, to_in_redirect,
      {"{owner_flag}", "{id}"}, itself_text);
  // Before there was the tunnel
  add(proxy_to_itself, nat, istio_output, {over_lo, not_to, owned}, to_in_redirect, {"{owner_flag}", "{id}"},
      itself_text);
  add(app_to_itself, nat, istio_output, {over_lo, not_owned}, returns, {"{owner_flag}", "{id}"}, app_text);
  add(app_to_itself, nat, istio_output, {over_lo, tcp, not_to_port, not_owned}, returns, {"{owner_flag}", "{id}"},
      app_text);
  // Its rule does not tell which of the two it is.
  add(proxy_or_group_return, nat, istio_output, {any(OwnerMatch{OwnerKind::gid, {}, false})}, returns, {"-g", "{id}"},
      "traffic of {owner}, the proxy's or an excluded group's, goes out as it is");
  add(proxy_return, nat, istio_output, {owned}, returns, {"{owner_flag}", "{id}"},
      "the proxy's own traffic ({owner}) goes out as it is");
  add(group_return, nat, istio_output, {owned}, returns, {"ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE", "{id}", "="},
      "outbound of group {id} bypasses the proxy");
  add(only_groups, nat, istio_output, {not_of_group}, returns, {"ISTIO_OUTBOUND_OWNER_GROUPS", "{id}", "="},
      "only groups {id} go to the proxy");
  add(only_groups, nat, istio_output, {}, returns,
      "ISTIO_OUTBOUND_OWNER_GROUPS=", "no group's outbound goes to the proxy");

  // Of one protocol each, as rules for ports: without it they would look like those of the proxy.
  for (const RowMatch& protocol : {tcp, udp}) {
    for (const auto& [kind, flag] : {std::pair{OwnerKind::uid, "--exclude-uids"}, {OwnerKind::gid, "--exclude-gids"}}) {
      add(outbound_excluded_owner, nat, istio_output, {protocol, any(OwnerMatch{kind, {}, false})}, returns,
          {flag, "{id}"}, "outbound of {owner} bypasses the proxy");
    }
    add(outbound_excluded_owner_port, nat, istio_output,
        {protocol, to_port, any(OwnerMatch{OwnerKind::uid, {}, false})}, returns,
        {"--exclude-uid-ports", "{id}:{port}"}, "outbound of {owner} to port {port} bypasses the proxy");
  }

  const RowMatch of_cgroup = any(CgroupMatch{});
  add(outbound_bypassing_cgroup, nat, istio_output, {of_cgroup}, returns, {"--bypass-cgroup", "{cgroup}"},
      "outbound of cgroup {cgroup} bypasses the proxy");

  add(dns_zone_jump, raw, output, {}, to_output_dns, "--redirect-dns", "DNS is given its conntrack zones");
  add(dns_jump, nat, istio_output, {}, to_output_dns, "--redirect-dns", "DNS is checked");
  add(dns_proxy_query, raw, istio_output_dns, {udp, dns, owned}, in_zone_1, "--redirect-dns", proxy_query_text);
  add(dns_proxy_answer, raw, istio_output_dns, {udp, proxy_answers, owned}, in_zone_2, "--redirect-dns",
      proxy_answer_text);
  for (const RowMatch& sender : {owned, of_cgroup}) {
    add(dns_excluded_over_lo, raw, istio_output_dns, {over_lo, udp, dns, sender}, returns, "--redirect-dns",
        "queries of {sender}, which bypass the proxy, have no zone of their own over lo: nor have the answers");
    add(dns_excluded_query, raw, istio_output_dns, {not_over_lo, udp, dns, to, sender}, in_zone_1, "--redirect-dns",
        excluded_query_text);
    add(dns_excluded_query, raw, istio_output_dns, {not_over_lo, udp, dns, sender}, in_zone_1, "--capture-all-dns",
        excluded_query_text);
  }
  add(dns_answer_jump, raw, prerouting, {}, to_inbound, "--redirect-dns",
      "answers of DNS servers are given their conntrack zone");
  add(dns_query, raw, istio_output_dns, {udp, dns, to}, in_zone_2, "--redirect-dns", query_text);
  add(dns_query, raw, istio_output_dns, {udp, dns}, in_zone_2, "--capture-all-dns", query_text);
  add(dns_answer, raw, istio_inbound, {udp, dns_answer_port, from}, in_zone_1, "--redirect-dns", answer_text);
  add(dns_answer, raw, istio_inbound, {udp, dns_answer_port}, in_zone_1, "--capture-all-dns", answer_text);
  add(dns_forwarded_query, raw, istio_inbound, {in_any, udp, dns, to}, in_zone_1, "--track-forwarded-dns",
      forwarded_query_text);
  add(dns_forwarded_query, raw, istio_inbound, {in_any, udp, dns}, in_zone_1, "--track-forwarded-dns",
      forwarded_query_text);

  add(loopback_return, nat, istio_output, {usual(AddressMatch{End::destination, either(Address::loopback), false})},
      returns, "", "loopback is never captured");
  add(outbound_excluded_range, nat, istio_output, {to}, returns, {"-x", "{range}"},
      "outbound to {range} bypasses the proxy");
  add(outbound_included_port, nat, istio_output, {tcp, to_port}, to_redirect, {"-q", "{port}"},
      "outbound to port {port} goes to the proxy");
  add(outbound_included_range, nat, istio_output, {}, to_redirect, {"-i", "*"},
      "all other outbound TCP goes to the proxy");
  add(outbound_included_range, nat, istio_output, {to}, to_redirect, {"-i", "{range}"},
      "outbound TCP to {range} goes to the proxy");
  add(own_address_redirect, nat, istio_output, {not_to, over_lo}, to_redirect, "",
      "what goes to the pod's own address, not loopback, goes to the proxy (Istio 1.0 to 1.2)");
  add(own_address_redirect, nat, istio_output, {not_to, over_lo}, to_in_redirect, "",
      "what goes to the pod's own address, not loopback, goes to the proxy (Istio 1.3 and 1.4)");

  add(tproxy_save_mark, mangle, prerouting, {tcp, mark_any}, Connmark::save, {"-t", "{mark}"},
      "a connection that the proxy opened with the client's address keeps its mark");
  add(tproxy_keep_mark, mangle, output, {tcp, over_lo, mark_any}, returns, {"-t", "{mark}"},
      "what the proxy passes on to the app keeps its mark");
  add(tproxy_mark_proxy, mangle, output, {not_to, tcp, over_lo, owned}, SetMark{}, {"{owner_flag}", "{id}"},
      "the proxy calling this pod's own address: marked, so that it counts as inbound");
  add(tproxy_restore_mark, mangle, output, {tcp, any(ConnmarkMatch{})}, Connmark::restore, {"-t", "{mark}"},
      "the app's answers to such a connection go back to the proxy");
  add(tproxy_return, mangle, istio_inbound, {tcp, mark_any}, returns, {"-t", "{mark}"},
      "what the proxy passes on is not captured again", 1);
  add(tproxy_passthrough, mangle, istio_inbound, {tcp, from_passthrough, from_lo}, returns, "", passthrough_text, 2);
  add(tproxy_app_to_itself, mangle, istio_inbound, {tcp, from_lo, any(except(MarkMatch{}))}, returns, "",
      "the app talking to itself over lo bypasses the proxy", 3);
  add(inbound_udp_jump, mangle, prerouting, {udp}, to_inbound, "--capture-udp", "inbound UDP is checked");
  add(inbound_udp_over_lo, mangle, istio_inbound, {from_lo, udp}, returns, "--capture-udp",
      "UDP over lo, what the proxy passes on among it, is not captured");
  add(inbound_udp_answer, mangle, istio_inbound, {udp, RowMatch(an_answer)}, returns, "--capture-udp",
      "answers to the pod's own UDP are not captured");
  add(inbound_udp_tproxy, mangle, istio_inbound, {udp, to_port}, Jump{istio_tproxy}, {"--capture-udp", "{port}"},
      "inbound UDP to port {port} goes to the proxy");
  add(tproxy_listener, mangle, istio_tproxy, {not_to, udp}, Tproxy{}, "--capture-udp",
      "UDP to the proxy's transparent inbound listener, port {to}");
  const auto captured = [&](MeshRule id, Table table, const char* chain) {
    add(id, table, istio_inbound, {tcp}, Jump{chain}, {"-b", "*"}, "all other inbound TCP goes to the proxy");
    add(id, table, istio_inbound, {tcp, to_port}, Jump{chain}, {"-b", "{port}"},
        "inbound to port {port} goes to the proxy");
  };
  captured(inbound_redirect, nat, istio_in_redirect);
  captured(inbound_tproxy, mangle, istio_tproxy);
  // ip_set, or in nftables the set's addresses.
  add(host_probe_jump, nat, postrouting, {}, Jump{istio_postrouting}, "",
      "what leaves the node is checked: are they probes of the kubelet?", 1);
  for (const RowMatch& pods : {RowMatch(in_probe_set(Family::ipv4)), RowMatch(in_probe_set(Family::ipv6)), to}) {
    add(host_probe_source, nat, istio_postrouting, {RowMatch(SocketMatch{}), tcp, pods}, Nat{End::source, {}, {}, {}},
        {"{probe_flag}", "{to}"}, "what a process of the node sends to a pod in ambient mode comes from {to}");
  }
  for (const RowMatch& protocol : {tcp, udp}) {
    add(outbound_excluded_port, nat, istio_output, {protocol, to_port}, returns, {"-o", "{port}"},
        "outbound to port {port} bypasses the proxy");
    // In Istio 1.8 to 1.11 DNS has no chain of its own.
    for (const char* chain : {istio_output_dns, istio_output}) {
      const char* text = "DNS over {protocol} to {address} goes to the proxy's resolver, port {to}";
      add(dns_redirect, nat, chain, {protocol, dns, to}, redirects, "--redirect-dns", text);
      add(dns_redirect, nat, chain, {protocol, dns}, redirects, "--capture-all-dns", text);
    }
  }

  // Of ambient pods: what ztunnel sends has a mark. Its own sockets are in the pod's namespace.
  const RowMatch of_ztunnel = words::of_ztunnel, others = except(words::of_ztunnel);
  const RowMatch of_answer = MarkMatch{ztunnel_connection_mark, ztunnel_mask, false};
  const char* in_ambient = "--dataplane";
  add(ambient_inbound_jump, nat, prerouting, {}, Jump{istio_prert}, {in_ambient, "ambient"},
      "what comes in, also over lo, is checked");
  add(ambient_mark_connection, mangle, istio_prert, {of_ztunnel}, SetConnmark{ztunnel_connection_mark, ztunnel_mask},
      {in_ambient, "ambient"}, "a connection that ztunnel opened to the app is marked");
  add(ambient_restore_mark, mangle, istio_output,
      {RowMatch(ConnmarkMatch{ztunnel_connection_mark, ztunnel_mask, false})}, Connmark::restore,
      {in_ambient, "ambient"},
      "the app's answers to such a connection are marked, so that the policy route brings them to ztunnel");
  add(ambient_virtual_machine_redirect, nat, istio_prert, {in_any, tcp}, redirects, {"-k", "{interface}"},
      "TCP from the virtual machine at {interface} is outbound: to ztunnel's outbound listener, port {to}");
  add(ambient_virtual_machine_return, nat, istio_prert, {in_any, tcp}, returns, {"-k", "{interface}"},
      "TCP from the virtual machine at {interface} is not inbound");
  add(ambient_probe, nat, istio_prert, {from, tcp}, accepts, {"{probe_flag}", "{address}"},
      "the kubelet's probes, which come from {address}, go straight to the app");
  add(ambient_probe_answer, nat, istio_output, {to, tcp}, accepts, {"{probe_flag}", "{address}"},
      "what goes to {address}, the address of the kubelet's probes, goes out as it is");
  add(ambient_inbound, nat, istio_prert, {not_to, tcp, not_to_port, others}, redirects, {"-z", "{to}"},
      "inbound TCP but that to HBONE, port {port}, goes to ztunnel's plaintext listener, port {to}");
  // Istio 1.21 to 1.23, and later ones that are asked for it, have TPROXY.
  const Tproxy to_ztunnel{0, ztunnel_connection_mark, ztunnel_mask};
  add(ambient_over_lo, mangle, istio_prert, {not_to, from_lo, tcp}, accepts, {in_ambient, "ambient"},
      "the app calling this pod's own address bypasses ztunnel's inbound listener");
  add(ambient_established, mangle, istio_prert, {tcp, established}, accepts, {in_ambient, "ambient"},
      "packets of a connection that is there already go on as they are");
  add(ambient_inbound, mangle, istio_prert, {tcp, to_port, others}, to_ztunnel, {"-e", "{port}"},
      "HBONE, port {port}, goes to ztunnel's listener, port {to}");
  add(ambient_inbound, mangle, istio_prert, {not_to, tcp, others}, to_ztunnel, {"-z", "{to}"},
      "other inbound TCP goes to ztunnel's plaintext listener, port {to}");
  add(ambient_dns_redirect, nat, istio_output, {not_over_lo, udp, others, dns}, redirects, "--redirect-dns",
      "DNS over udp goes to ztunnel's resolver, port {to}");
  add(ambient_dns_redirect, nat, istio_output, {not_over_lo, udp, dns}, redirects, "--redirect-dns",
      "DNS over udp goes to ztunnel's resolver, port {to} (Istio 1.21 to 1.23)");
  add(ambient_dns_redirect, nat, istio_output, {not_to, tcp, dns, others}, redirects, "--redirect-dns",
      "DNS over tcp goes to ztunnel's resolver, port {to}");
  add(ambient_answer, nat, istio_output, {tcp, of_answer}, accepts, {in_ambient, "ambient"},
      "what belongs to a connection that ztunnel opened is not captured again");
  add(ambient_app_to_itself, nat, istio_output, {not_to, over_lo}, accepts, {in_ambient, "ambient"},
      "the app calling this pod's own address bypasses ztunnel's outbound listener");
  add(ambient_outbound, nat, istio_output, {not_to, tcp, others}, redirects, {"-p", "{to}"},
      "all other outbound TCP goes to ztunnel's outbound listener, port {to}");
  add(ambient_dns_query, raw, istio_output, {udp, of_ztunnel, dns}, in_zone_1, "--redirect-dns",
      "ztunnel's own queries are tracked apart, in zone 1");
  add(ambient_dns_answer, raw, istio_prert, {udp, others, dns_answer_port}, in_zone_1, "--redirect-dns",
      "answers of DNS servers to ztunnel belong to zone 1");
  add(ambient_dns_forwarded_query, raw, istio_prert, {in_any, udp, dns}, in_zone_1, "--track-forwarded-dns",
      forwarded_query_text);

  // Of Istio 1.9 to 1.22 the rules about UDP are in the built-in chains themselves, of 1.23 and 1.24 in ISTIO_OUTPUT.
  // Up to 1.18 the answers' zone was given by the wrong end.
  add(dns_zone_jump, raw, output, {udp}, to_output, "--redirect-dns", "DNS is given its conntrack zones");
  add(dns_jump, nat, output, {udp}, to_output, "--redirect-dns", "DNS is checked");
  for (const char* chain : {output, istio_output}) {
    add(dns_proxy_query, raw, chain, {udp, dns, owned}, in_zone_1, "--redirect-dns", proxy_query_text);
    add(dns_proxy_answer, raw, chain, {udp, proxy_answers, owned}, in_zone_2, "--redirect-dns", proxy_answer_text);
    add(dns_query, raw, chain, {udp, dns, to}, in_zone_2, "--redirect-dns", query_text);
    add(dns_query, raw, chain, {udp, dns}, in_zone_2, "--capture-all-dns", query_text);
    add(dns_proxy_return, nat, chain, {udp, dns, owned}, returns, "--redirect-dns",
        "the proxy's ({owner}) own queries go to the server");
    add(dns_other_groups, nat, chain, {udp, dns, not_of_group}, returns, {"ISTIO_OUTBOUND_OWNER_GROUPS", "{id}", "="},
        "only queries of groups {id} go to the proxy's resolver");
    add(dns_other_groups, nat, chain, {udp, dns}, returns,
        "ISTIO_OUTBOUND_OWNER_GROUPS=", "no group's queries go to the proxy's resolver");
  }
  const Redirect to_resolver{proxy_dns_port};
  const char* to_resolver_text = "DNS over udp to {address} goes to the proxy's resolver, port {to}";
  add(dns_redirect, nat, output, {udp, dns, to}, to_resolver, "--redirect-dns", to_resolver_text);
  add(dns_redirect, nat, output, {udp, dns}, to_resolver, "--capture-all-dns", to_resolver_text);
  add(dns_answer, raw, prerouting, {udp, dns_answer_port, from}, in_zone_1, "--redirect-dns", answer_text);
  add(dns_answer, raw, prerouting, {udp, dns_answer_port, to}, in_zone_1, "--redirect-dns", answer_text);
  add(dns_answer, raw, prerouting, {udp, dns_answer_port}, in_zone_1, "--capture-all-dns", answer_text);
  // Up to 1.22.
  add(invalid_drop, mangle, prerouting, {invalid}, drops, "--drop-invalid", "what belongs to no connection is dropped");

  // Istio 1.7 and 1.8 translated queries, and their source, and up to 1.7 Envoy answered them, too.
  constexpr std::uint16_t envoy_dns_port = 15013;
  add(dns_redirect, nat, output, {udp, dns}, Redirect{envoy_dns_port}, "--redirect-dns",
      "DNS over udp goes to the proxy's resolver, port {to} (Istio 1.6)");
  for (const std::uint16_t port : {std::uint16_t{proxy_dns_port}, envoy_dns_port}) {
    const Address loopback = Address::loopback(Family::ipv4);
    add(dns_redirect, nat, output, {udp, dns},
        Nat{End::destination, AddressRange::single(loopback), PortRange{port},
            fmt::format("-j DNAT --to-destination 127.0.0.1:{}", port)},
        "--redirect-dns", "DNS over udp goes to the proxy's resolver (Istio 1.7 and 1.8)");
    add(dns_source, nat, postrouting, {udp, RowMatch(dport(port))}, source_nat(loopback), "--redirect-dns",
        "so that answers of the proxy's resolver come back over lo (Istio 1.7 and 1.8)");
  }
  add(dns_redirect, nat, istio_redirect, {tcp, dns}, to_resolver, "--redirect-dns",
      "DNS over tcp goes to the proxy's resolver, port {to} (Istio 1.8)");

  // Istio 1.0 to 1.4, where it does not capture IPv6.
  add(ipv6_established, filter, input, {RowMatch(ctstate(ConntrackStateMatch::established))}, accepts, "",
      "of IPv6, packets of connections that the pod has opened come in (Istio 1.0 to 1.4)");
  add(ipv6_loopback, filter, input,
      {from_lo, RowMatch(destination(AddressRange::single(Address::loopback(Family::ipv6))))}, accepts, "",
      "of IPv6, what goes to ::1 comes in (Istio 1.4)");
  add(ipv6_refused, filter, input, {}, Reject{"-j REJECT --reject-with icmp6-port-unreachable"}, "",
      "of IPv6, nothing else comes in (Istio 1.0 to 1.4)");
  return rows;
}

// ---- Whether a rule is of a row

// Returns the match of a row with the value of `from`, which is of the same kind.
Match with_value(const RowMatch& row, const Match& from) {
  Match match = row.match;
  if (row.placeholder == Placeholder::none) return match;
  if (row.placeholder == Placeholder::any_owner) std::get<OwnerMatch>(match).kind = std::get<OwnerMatch>(from).kind;
  std::visit([&]<typename Kind>(Kind& open) { open.take_value(std::get<Kind>(from)); }, match);
  return match;
}

template <typename Value>
bool is_one_of(const std::vector<Value>& usual, const std::vector<Value>& values) {
  return values.size() == 1 && std::ranges::find(usual, values.front()) != usual.end();
}

bool has_usual_value(const Match& row, const Match& match) {
  if (const auto* port = std::get_if<PortMatch>(&row)) return is_one_of(port->ports, std::get<PortMatch>(match).ports);
  return is_one_of(std::get<AddressMatch>(row).ranges, std::get<AddressMatch>(match).ranges);
}

// A rule that was made of a row has any values; one that is read is known by the usual ones.
enum class Values : std::uint8_t { any, usual };

bool is_of(const RowMatch& row, const Match& match, Values values) {
  return row.match.index() == match.index() && with_value(row, match) == match &&
         (row.placeholder != Placeholder::usual || values == Values::any || has_usual_value(row.match, match));
}

// The port or mark of a target.
std::optional<std::uint32_t> value_of(const Target& target) {
  if (const auto* mark = std::get_if<SetMark>(&target)) return mark->mark;
  return listening_port(target);
}

bool is_open(const Target& row) {
  const auto* nat = std::get_if<Nat>(&row);
  return nat != nullptr ? !nat->addresses : value_of(row) == 0;
}

bool is_of(const Target& row, const Target& target) {
  if (row.index() != target.index() || !is_open(row)) return row == target;
  if (const auto* tproxy = std::get_if<Tproxy>(&target)) {
    const auto& open = std::get<Tproxy>(row);
    return tproxy->mask == open.mask && (open.mark == 0 || tproxy->mark == open.mark);
  }
  if (const auto* nat = std::get_if<Nat>(&target))
    return nat->addresses && *nat == source_nat(nat->addresses->first) && nat->end == std::get<Nat>(row).end;
  const auto* mark = std::get_if<SetMark>(&target);
  return mark == nullptr || mark->mask == std::get<SetMark>(row).mask;
}

bool has_matches_of(const Rule& rule, const Row& row, Values values) {
  std::span<const RowMatch> fixed = row.matches;
  const RowMatch* repeated = nullptr;
  if (!fixed.empty() && fixed.back().placeholder == Placeholder::each) {
    repeated = &fixed.back();
    fixed = fixed.first(fixed.size() - 1);
  }
  const auto is_repeated = [&](const Match& match) { return repeated != nullptr && is_of(*repeated, match, values); };
  const auto more = static_cast<std::size_t>(std::ranges::count_if(rule.matches, is_repeated));
  return rule.matches.size() == fixed.size() + more && (repeated != nullptr) == (more > 0) &&
         std::ranges::all_of(fixed, [&](const RowMatch& each) {
           return std::ranges::any_of(rule.matches, [&](const Match& match) { return is_of(each, match, values); });
         });
}

bool is_of(const Rule& rule, const Row& row, Values values) {
  return rule.chain == row.chain && is_of(row.target, rule.target) && has_matches_of(rule, row, values);
}

// ---- The texts of a rule

// Returns the text of a rule's match of this kind. Rules that are read may have lost one that matches everything.
template <typename M, typename Text>
std::string text_of(const Rule& rule, const Text& text) {
  const auto* match = find_match<M>(rule);
  return match != nullptr ? text(*match) : "any";
}

std::string mark_text(const Rule& rule) {
  const auto number = [](const auto& match) { return std::to_string(match.value); };
  return find_match<ConnmarkMatch>(rule) != nullptr ? text_of<ConnmarkMatch>(rule, number)
                                                    : text_of<MarkMatch>(rule, number);
}

// Where the values stand: "-d 80,443" or "-d … (200 ports)"; "port 80, 443".
enum class Place : std::uint8_t { flag, sentence };

template <typename Number>
std::uint64_t count(const std::vector<Range<Number>>& numbers) {
  std::uint64_t all = 0;
  for (const auto& range : numbers) all += std::uint64_t{range.last} - range.first + 1;
  return all;
}
std::size_t count(const std::vector<AddressRange>& ranges) { return ranges.size(); }

template <typename Item, typename Text>
std::string listed(const std::vector<Item>& items, Place place, const char* kind, const Text& text) {
  constexpr std::size_t longest = 40;  // of a list in a flag
  if (place == Place::sentence) return some(items, text);
  std::string all;
  for (const Item& item : items) {
    all += (all.empty() ? "" : ",") + text(item);
    if (all.size() > longest) return fmt::format("… ({} {})", count(items), kind);
  }
  return all;
}

// Without a match, all addresses.
std::string ranges_text(const Rule& rule, Place place) {
  const auto* address = find_match<AddressMatch>(rule);
  if (address == nullptr) return rule.families.contains(Family::ipv4) ? "0.0.0.0/0" : "::/0";
  return listed(address->ranges, place, "ranges", [](const AddressRange& range) { return range.text(); });
}

std::string servers_text(const Rule& rule, Place place) {
  const auto* address = find_match<AddressMatch>(rule);
  if (address == nullptr) return "any server";
  return listed(address->ranges, place, "servers", [](const AddressRange& range) {
    return range.first == range.last ? range.first.text() : range.text();
  });
}

std::string ids_text(const Rule& rule, Place place) {
  std::vector<IdRange> ids;
  for (const Match& match : rule.matches) {
    if (const auto* owner = std::get_if<OwnerMatch>(&match))
      ids.insert(ids.end(), owner->ids.begin(), owner->ids.end());
  }
  return listed(ids, place, "ids", text<std::uint32_t>);
}

std::string owner_flag(const OwnerMatch& owner) { return owner.kind == OwnerKind::uid ? "-u" : "-g"; }

std::string value(std::string_view placeholder, const Rule& rule, Place place) {
  if (placeholder == "interface") return text_of<InterfaceMatch>(rule, [](const auto& match) { return match.name; });
  if (placeholder == "range") return ranges_text(rule, place);
  if (placeholder == "address") return servers_text(rule, place);
  if (placeholder == "port") {
    return text_of<PortMatch>(
        rule, [&](const auto& match) { return listed(match.ports, place, "ports", text<std::uint16_t>); });
  }
  if (placeholder == "owner") {
    return text_of<OwnerMatch>(rule, [&](const auto& match) {
      return (match.kind == OwnerKind::uid ? "uid " : "gid ") + ids_text(rule, place);
    });
  }
  if (placeholder == "cgroup") {
    return text_of<CgroupMatch>(rule, [](const auto& cgroup) {
      return cgroup.path.empty() ? std::to_string(cgroup.id) : printable(cgroup.path);
    });
  }
  if (placeholder == "sender")
    return find_match<CgroupMatch>(rule) != nullptr ? "cgroup " + value("cgroup", rule, place)
                                                    : value("owner", rule, place);
  if (placeholder == "owner_flag") return text_of<OwnerMatch>(rule, owner_flag);
  if (placeholder == "id") return ids_text(rule, place);
  if (placeholder == "mark") return mark_text(rule);
  if (placeholder == "protocol") {
    return text_of<ProtocolMatch>(rule, [](const auto& match) { return std::string(name(match.protocol)); });
  }
  const auto* nat = std::get_if<Nat>(&rule.target);
  if (placeholder == "to" && nat != nullptr) return nat->addresses->first.text();
  if (placeholder == "to") return std::to_string(value_of(rule.target).value());
  if (placeholder == "probe_flag") {
    const bool is_ipv4 =
        nat != nullptr ? nat->addresses->family() == Family::ipv4 : rule.families.contains(Family::ipv4);
    return is_ipv4 ? "--probe-address" : "--probe-address6";
  }
  throw std::logic_error(fmt::format("a row's text has the unknown value {}", placeholder));
}

std::string filled(std::string_view text, const Rule& rule, Place place) {
  std::string result;
  for (auto open = text.find('{'); open != std::string_view::npos; open = text.find('{')) {
    const auto close = text.find('}', open);
    result += text.substr(0, open);
    result += value(text.substr(open + 1, close - open - 1), rule, place);
    text.remove_prefix(close + 1);
  }
  return result += text;
}

// ---- The rule of a row

// A row of uids is not for gids.
bool is_for(const RowMatch& row, const Match& value) {
  const auto* owner = std::get_if<OwnerMatch>(&row.match);
  return owner == nullptr || row.placeholder == Placeholder::any_owner ||
         owner->kind == std::get<OwnerMatch>(value).kind;
}

// The matches of a row with these values; nothing unless they fill all its holes, and no more.
std::optional<std::vector<Match>> filled(const Row& row, const std::vector<Match>& values) {
  if (!row.matches.empty() && row.matches.front().placeholder == Placeholder::each && !values.empty()) return values;
  std::vector<Match> matches;
  std::size_t used = 0;
  for (const RowMatch& each : row.matches) {
    const auto value = std::ranges::find(values, each.match.index(), &Match::index);
    if (value == values.end() ? each.placeholder != Placeholder::none : !is_for(each, *value)) return {};
    matches.push_back(value != values.end() ? with_value(each, *value) : each.match);
    if (each.placeholder != Placeholder::none || (value != values.end() && *value == each.match)) ++used;
  }
  if (used != values.size()) return {};
  return matches;
}

}  // namespace

const std::vector<Row>& catalogue() {
  static const std::vector<Row> rows = make_rows();
  return rows;
}

Rule instantiate(MeshRule id, const std::vector<Match>& values, const RowOverrides& overrides) {
  for (const Row& row : catalogue()) {
    if (row.id != id || is_open(row.target) != overrides.target.has_value()) continue;
    auto matches = filled(row, values);
    if (!matches) continue;
    Rule rule{overrides.families.value_or(Families::both()),
              overrides.table.value_or(row.table),
              row.chain,
              std::move(*matches),
              overrides.target.value_or(row.target),
              {},
              row.insert_at};
    if (const auto* address = find_match<AddressMatch>(rule)) rule.families = address->ranges.front().family();
    if (const auto* nat = std::get_if<Nat>(&rule.target)) rule.families = nat->addresses->family();
    rule.origin = {id, overrides.flag, {}};
    return rule;
  }
  throw std::logic_error(fmt::format("no row of the mesh's rule {} has these values", static_cast<int>(id)));
}

bool is_of(const Rule& rule, const Row& row) { return is_of(rule, row, Values::usual); }

const Row* row_of(const Rule& rule) {
  const auto found = std::ranges::find_if(catalogue(), [&](const Row& row) { return is_of(rule, row); });
  return found == catalogue().end() ? nullptr : &*found;
}

bool is_of(const Rule& rule, MeshRule id) {
  return std::ranges::any_of(catalogue(), [&](const Row& row) { return row.id == id && is_of(rule, row); });
}

bool is_of_ambient(MeshRule id) {
  return id >= MeshRule::ambient_inbound_jump && id <= MeshRule::ambient_dns_forwarded_query;
}

MeshRule kind_of(const Rule& rule) {
  const Row* row = row_of(rule);
  return row != nullptr ? row->id : MeshRule::none;
}

Reason reason_of(const Row& row, const Rule& rule) {
  Reason reason{filled(row.flag.option, rule, Place::flag),
                filled(row.flag.values, rule, Place::flag),
                {},
                filled(row.sentence, rule, Place::sentence),
                row.id};
  reason.flag = reason.option + (reason.values.empty() ? "" : row.flag.between) + reason.values;
  return reason;
}

Reason reason_of(const Rule& rule) {
  const RuleOrigin& origin = rule.origin;
  // Where fold() left out a match that matches everything, no row of the rule's has its matches: then the last one.
  const Row* found = nullptr;
  for (const Row& row : catalogue()) {
    if (row.id != origin.rule || rule.chain != row.chain || !is_of(row.target, rule.target)) continue;
    found = &row;
    if (is_of(rule, row, Values::any)) break;
  }
  if (found == nullptr) return {{}, {}, {}, origin.comment};
  Reason reason = reason_of(*found, rule);
  if (origin.flag != nullptr) reason.flag = reason.option = origin.flag;
  return reason;
}

}  // namespace sidetrack
