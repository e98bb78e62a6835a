// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "mesh/list_text.h"
#include "mesh/ownership.h"
#include "mesh/rule_words.h"
#include "model/iptables.h"
#include "model/printable.h"

namespace sidetrack {
namespace {

using namespace words;

// The shape of a rule: a value that is left out (an empty name, no range, port or id, mark or port 0) may be any.
struct Shape {
  const char* chain;
  std::vector<Match> matches;  // in any order
  Target target;
  const char* flag;  // {interface}, {ports}, {ranges}, {owner}, {id}, {ids}, {mark}, {protocol}: values of its matches
  const char* sentence;  // and {to}: the target's port or mark
};

InterfaceMatch by_any(Direction direction) { return {direction, "", false}; }
AddressMatch any_range(End end) { return {end, {}, false}; }
PortMatch any_port(End end) { return {end, {}, false}; }
OwnerMatch any_id(OwnerKind kind) { return {kind, {}, false}; }
AddressMatch the_passthrough(const char* address) { return source(*AddressRange::parse(address)); }

// The rules of the reference, in the order of the plan, then those of its earlier versions.
std::vector<Shape> make_shapes() {
  const ConntrackStateMatch established = ctstate(ConntrackStateMatch::related | ConntrackStateMatch::established);
  const PortMatch to_port = any_port(End::destination);
  const PortMatch dns = dport(53);
  const AddressMatch to = any_range(End::destination);
  const AddressMatch from = any_range(End::source);
  const InterfaceMatch in_any = by_any(Direction::in);
  const InterfaceMatch out_any = by_any(Direction::out);
  const Target redirect = Redirect{};

  std::vector<Shape> shapes{
      // 1, 2. interfaces
      {prerouting, {in_any}, Verdict::return_, "-c {interface}", "what comes in by {interface} is left alone"},
      {output, {out_any}, Verdict::return_, "-c {interface}", "what goes out by {interface} is left alone"},
      // 3. drop-invalid
      {prerouting,
       {ctstate(ConntrackStateMatch::invalid)},
       Jump{istio_drop},
       "--drop-invalid",
       "packets of no known connection are dropped, lest the app answer them with a reset"},
      {istio_drop, {}, Verdict::drop, "--drop-invalid", "dropped"},
      // 4. the ends
      {istio_inbound,
       {tcp, dport(15008)},
       Verdict::return_,
       "-e {ports}",
       "the tunnel's port: the proxy listens there itself"},
      {istio_redirect, {tcp}, redirect, "-p {to}", "to the proxy's outbound listener, port {to}"},
      {istio_in_redirect, {tcp}, redirect, "-z {to}", "to the proxy's inbound listener, port {to}"},
      // 5. inbound
      {istio_divert,
       {},
       SetMark{},
       "-t {to}",
       "marked, so that the policy route brings it to the proxy's open connection"},
      {istio_divert, {}, Verdict::accept, "-m TPROXY", "accepted as marked"},
      {istio_tproxy,
       {except(to), tcp},
       Tproxy{},
       "-m TPROXY",
       "to the proxy's transparent inbound listener, port {to}"},
      {prerouting, {tcp}, Jump{istio_inbound}, "-b", "inbound TCP is looked at"},
      {istio_inbound, {tcp, to_port}, Verdict::return_, "-d {ports}", "inbound to port {ports} is left to the app"},
      {istio_inbound, {tcp}, Jump{istio_in_redirect}, "-b *", "all other inbound TCP goes to the proxy"},
      {istio_inbound,
       {tcp, to_port},
       Jump{istio_in_redirect},
       "-b {ports}",
       "inbound to port {ports} goes to the proxy"},
      {istio_inbound,
       {tcp, established},
       Jump{istio_divert},
       "-b *",
       "packets of a connection that the proxy already has"},
      {istio_inbound,
       {tcp, to_port, established},
       Jump{istio_divert},
       "-b {ports}",
       "packets of a connection that the proxy already has"},
      {istio_inbound, {tcp}, Jump{istio_tproxy}, "-b *", "all other inbound TCP goes to the proxy"},
      {istio_inbound, {tcp, to_port}, Jump{istio_tproxy}, "-b {ports}", "inbound to port {ports} goes to the proxy"},
      // 6, 7. outbound
      {output, {}, Jump{istio_output}, "", "outbound traffic is looked at"},
      {istio_output, {tcp, to_port}, Verdict::return_, "-o {ports}", "outbound to port {ports} bypasses the proxy"},
      {istio_output, {udp, to_port}, Verdict::return_, "-o {ports}", "outbound to port {ports} bypasses the proxy"},
      // 8.
      {istio_output,
       {out("lo"), the_passthrough("127.0.0.6/32")},
       Verdict::return_,
       "",
       "the proxy passes inbound traffic on to the app from 127.0.0.6"},
      {istio_output,
       {out("lo"), the_passthrough("::6/128")},
       Verdict::return_,
       "",
       "the proxy passes inbound traffic on to the app from ::6"},
      // 12. DNS
      {output, {}, Jump{istio_output_dns}, "--redirect-dns", "DNS is given its conntrack zones"},
      {istio_output, {}, Jump{istio_output_dns}, "--redirect-dns", "DNS is looked at"},
      {istio_output_dns,
       {tcp, dns, to},
       redirect,
       "--redirect-dns",
       "DNS over tcp to {address} goes to the proxy's resolver, port {to}"},
      {istio_output_dns,
       {udp, dns, to},
       redirect,
       "--redirect-dns",
       "DNS over udp to {address} goes to the proxy's resolver, port {to}"},
      {istio_output_dns,
       {tcp, dns},
       redirect,
       "--capture-all-dns",
       "DNS over tcp to any server goes to the proxy's resolver, port {to}"},
      {istio_output_dns,
       {udp, dns},
       redirect,
       "--capture-all-dns",
       "DNS over udp to any server goes to the proxy's resolver, port {to}"},
      {prerouting, {}, Jump{istio_inbound}, "--redirect-dns", "answers of DNS servers are given their conntrack zone"},
      {istio_output_dns,
       {udp, dns, to},
       CtZone{2},
       "--redirect-dns",
       "the app's queries to {address} are tracked in zone 2"},
      {istio_output_dns,
       {udp, dns},
       CtZone{2},
       "--capture-all-dns",
       "the app's queries to any server are tracked in zone 2"},
      {istio_inbound,
       {udp, sport(53), from},
       CtZone{1},
       "--redirect-dns",
       "answers of {address} to the proxy belong to zone 1"},
      {istio_inbound,
       {udp, sport(53)},
       CtZone{1},
       "--capture-all-dns",
       "answers of any server to the proxy belong to zone 1"},
      // 13 to 16.
      {istio_output,
       {destination(*AddressRange::parse("127.0.0.1/32"))},
       Verdict::return_,
       "",
       "loopback is never captured"},
      {istio_output,
       {destination(*AddressRange::parse("::1/128"))},
       Verdict::return_,
       "",
       "loopback is never captured"},
      {istio_output, {to}, Verdict::return_, "-x {ranges}", "outbound to {ranges} bypasses the proxy"},
      {istio_output, {tcp, to_port}, Jump{istio_redirect}, "-q {ports}", "outbound to port {ports} goes to the proxy"},
      {istio_output, {}, Jump{istio_redirect}, "-i *", "all other outbound TCP goes to the proxy"},
      {istio_output, {to}, Jump{istio_redirect}, "-i {ranges}", "outbound TCP to {ranges} goes to the proxy"},
      {prerouting,
       {in_any},
       Jump{istio_redirect},
       "-k {interface}",
       "what the virtual machine behind {interface} sends is outbound traffic"},
      {prerouting,
       {in_any, to},
       Jump{istio_redirect},
       "-k {interface}",
       "what the virtual machine behind {interface} sends to {ranges} is outbound traffic"},
      // 17. TPROXY
      {prerouting,
       {tcp, mark(0)},
       Connmark::save,
       "-t {mark}",
       "a connection that the proxy opened with the client's address keeps its mark"},
      {output,
       {tcp, out("lo"), mark(0)},
       Verdict::return_,
       "-t {mark}",
       "what the proxy passes on to the app keeps its mark"},
      {output,
       {tcp, connmark(0)},
       Connmark::restore,
       "-t {mark}",
       "the app's answers to such a connection go back to the proxy"},
      {istio_inbound, {tcp, mark(0)}, Verdict::return_, "-t {mark}", "what the proxy passes on is not captured again"},
      {istio_inbound,
       {tcp, the_passthrough("127.0.0.6/32"), in("lo")},
       Verdict::return_,
       "",
       "the proxy passes inbound traffic on to the app from 127.0.0.6"},
      {istio_inbound,
       {tcp, the_passthrough("::6/128"), in("lo")},
       Verdict::return_,
       "",
       "the proxy passes inbound traffic on to the app from ::6"},
      {istio_inbound,
       {tcp, in("lo"), except(mark(0))},
       Verdict::return_,
       "",
       "the app talking to itself over lo bypasses the proxy"},
      // Istio 1.8 to 1.11: DNS without a chain of its own
      {istio_output,
       {tcp, dns, to},
       redirect,
       "--redirect-dns",
       "DNS over tcp to {address} goes to the proxy's resolver, port {to}"},
      {istio_output,
       {udp, dns, to},
       redirect,
       "--redirect-dns",
       "DNS over udp to {address} goes to the proxy's resolver, port {to}"},
      {istio_output,
       {tcp, dns},
       redirect,
       "--capture-all-dns",
       "DNS over tcp to any server goes to the proxy's resolver, port {to}"},
      {istio_output,
       {udp, dns},
       redirect,
       "--capture-all-dns",
       "DNS over udp to any server goes to the proxy's resolver, port {to}"},
      // Istio 1.1
      {output, {tcp}, Jump{istio_output}, "", "outbound TCP is looked at"},
      {istio_output,
       {except(to), out("lo")},
       Jump{istio_redirect},
       "",
       "what goes to the pod's own address, not loopback, goes to the proxy (Istio 1.1)"},
  };
  // 9, 10, and the proxy's parts of 12 and 17
  for (const OwnerKind kind : {OwnerKind::uid, OwnerKind::gid}) {
    const OwnerMatch proxy = any_id(kind);
    const char* flag = kind == OwnerKind::uid ? "-u {id}" : "-g {id}";
    const char* itself = "the proxy ({owner}) calling this pod's own address: inbound through the proxy";
    const char* app = "the app talking to itself (not {owner}) bypasses the proxy";
    const std::vector<Shape> owned{
        {istio_output, {out("lo"), except(to), tcp, except(to_port), proxy}, Jump{istio_in_redirect}, flag, itself},
        {istio_output, {out("lo"), except(to), proxy}, Jump{istio_in_redirect}, flag, itself},  // before the tunnel
        {istio_output, {out("lo"), except(proxy)}, Verdict::return_, flag, app},
        {istio_output, {out("lo"), tcp, except(to_port), except(proxy)}, Verdict::return_, flag, app},
        {istio_output_dns,
         {udp, dns, proxy},
         CtZone{1},
         "--redirect-dns",
         "the proxy's ({owner}) own queries are tracked apart, in zone 1"},
        {istio_output_dns,
         {udp, sport(15053), proxy},
         CtZone{2},
         "--redirect-dns",
         "the proxy's ({owner}) answers to the app are tracked in zone 2"},
        {output,
         {except(to), tcp, out("lo"), proxy},
         SetMark{},
         flag,
         "the proxy calling this pod's own address: marked, so that it counts as inbound"},
        // A gid may as well be one of ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE: the rules are the same.
        {istio_output,
         {proxy},
         Verdict::return_,
         flag,
         kind == OwnerKind::uid ? "the proxy's own traffic ({owner}) goes out as it is"
                                : "traffic of {owner}, the proxy's or an excluded group's, goes out as it is"},
    };
    shapes.insert(shapes.end(), owned.begin(), owned.end());
  }
  return shapes;
}

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> made = make_shapes();
  return made;
}

// Whether a match is of a shape: of the same kind, and with the shape's value if it has one.
struct IsOf {
  bool operator()(const InterfaceMatch& s, const InterfaceMatch& m) const {
    return s.direction == m.direction && s.negated == m.negated && (s.name.empty() || s.name == m.name);
  }
  bool operator()(const AddressMatch& s, const AddressMatch& m) const {
    return s.end == m.end && s.negated == m.negated && (s.ranges.empty() || s.ranges == m.ranges);
  }
  bool operator()(const ProtocolMatch& s, const ProtocolMatch& m) const { return s == m; }
  bool operator()(const PortMatch& s, const PortMatch& m) const {
    return s.end == m.end && s.negated == m.negated && (s.ports.empty() || s.ports == m.ports);
  }
  bool operator()(const OwnerMatch& s, const OwnerMatch& m) const {
    return s.kind == m.kind && s.negated == m.negated && (s.ids.empty() || s.ids == m.ids);
  }
  bool operator()(const ConntrackStateMatch& s, const ConntrackStateMatch& m) const { return s == m; }
  bool operator()(const MarkMatch& s, const MarkMatch& m) const {
    return s.negated == m.negated && s.mask == m.mask && (s.value == 0 || s.value == m.value);
  }
  bool operator()(const ConnmarkMatch& s, const ConnmarkMatch& m) const {
    return s.negated == m.negated && s.mask == m.mask && (s.value == 0 || s.value == m.value);
  }
  template <typename A, typename B>
  bool operator()(const A&, const B&) const {
    return false;
  }
};

struct LeadsTo {
  bool operator()(const Redirect& s, const Redirect& t) const { return s.port == 0 || s == t; }
  bool operator()(const Tproxy& s, const Tproxy& t) const { return s.mask == t.mask && (s.port == 0 || s == t); }
  bool operator()(const SetMark& s, const SetMark& t) const { return s.mask == t.mask && (s.mark == 0 || s == t); }
  template <typename A, typename B>
  bool operator()(const A& s, const B& t) const {
    if constexpr (std::is_same_v<A, B>) return s == t;
    return false;
  }
};

bool has_shape(const Rule& rule, const Shape& shape) {
  if (rule.matches.size() != shape.matches.size() || rule.target.index() != shape.target.index()) return false;
  if (rule.chain != shape.chain) return false;
  if (!std::visit(LeadsTo{}, shape.target, rule.target)) return false;
  return std::ranges::is_permutation(shape.matches, rule.matches,
                                     [](const Match& s, const Match& m) { return std::visit(IsOf{}, s, m); });
}

// The values of a rule, by the names that a shape's texts use.
struct Values {
  std::string interface, ports, ranges, address, owner, id, mark, to;
};

Values values(const Rule& rule) {
  Values v;
  for (const Match& match : rule.matches) {
    if (const auto* m = std::get_if<InterfaceMatch>(&match)) v.interface = printable(m->name);
    if (const auto* m = std::get_if<PortMatch>(&match)) v.ports = port_list(m->ports);
    if (const auto* m = std::get_if<AddressMatch>(&match)) {
      v.ranges = range_list(m->ranges);
      v.address = some(m->ranges, [](const AddressRange& range) {
        return range.first == range.last ? range.first.text() : range.text();
      });
    }
    if (const auto* m = std::get_if<OwnerMatch>(&match)) {
      v.id = id_list(m->ids);
      v.owner = (m->kind == OwnerKind::uid ? "uid " : "gid ") + v.id;
    }
    if (const auto* m = std::get_if<MarkMatch>(&match)) v.mark = fmt::format("{}", m->value);
    if (const auto* m = std::get_if<ConnmarkMatch>(&match)) v.mark = fmt::format("{}", m->value);
  }
  if (const auto* t = std::get_if<Redirect>(&rule.target)) v.to = fmt::format("{}", t->port);
  if (const auto* t = std::get_if<Tproxy>(&rule.target)) v.to = fmt::format("{}", t->port);
  if (const auto* t = std::get_if<SetMark>(&rule.target)) v.to = fmt::format("{}", t->mark);
  return v;
}

std::string filled(const char* text, const Values& v) {
  return fmt::format(fmt::runtime(text), fmt::arg("interface", v.interface), fmt::arg("ports", v.ports),
                     fmt::arg("ranges", v.ranges), fmt::arg("address", v.address), fmt::arg("owner", v.owner),
                     fmt::arg("id", v.id), fmt::arg("mark", v.mark), fmt::arg("to", v.to));
}

// -A ISTIO_OUTPUT -m owner ! --gid-owner G1 -m owner ! --gid-owner G2 -j RETURN: any number of groups
std::optional<Reason> only_groups(const Rule& rule) {
  if (rule.chain != istio_output || rule.target != Target(Verdict::return_)) return {};
  std::string groups;
  for (const Match& match : rule.matches) {
    const auto* owner = std::get_if<OwnerMatch>(&match);
    if (owner == nullptr || owner->kind != OwnerKind::gid || !owner->negated) return {};
    for (const IdRange& id : owner->ids) groups += (groups.empty() ? "" : ",") + number_text(id);
  }
  return Reason{"ISTIO_OUTBOUND_OWNER_GROUPS=" + groups, groups.empty() ? "no group's outbound goes to the proxy"
                                                                        : "only groups " + groups + " go to the proxy"};
}

// Istio's nftables tables name their chains istio-output-dns where iptables has ISTIO_OUTPUT_DNS.
bool is_istio_nftables(std::string_view chain) { return chain.starts_with("istio-"); }

std::string in_iptables_names(std::string chain) {
  if (!is_istio_nftables(chain)) return chain;
  std::ranges::transform(chain, chain.begin(),
                         [](char c) { return c == '-' ? '_' : static_cast<char>(std::toupper(c)); });
  return chain;
}

Rule in_iptables_names(Rule rule) {
  rule.chain = in_iptables_names(std::move(rule.chain));
  if (auto* jump = std::get_if<Jump>(&rule.target)) jump->chain = in_iptables_names(std::move(jump->chain));
  return rule;
}

}  // namespace

Reason describe(const Rule& given) {
  const Rule rule = in_iptables_names(given);
  // The common words of several rules that fold() made one: the shape says it with the values.
  const bool shortened = rule.reason.sentence.find("…") != std::string::npos;
  const Reason own{printable(rule.reason.flag), printable(rule.reason.sentence)};
  if (!own.sentence.empty() && !shortened) return own;
  for (const Shape& shape : shapes()) {
    if (!has_shape(rule, shape)) continue;
    const Values v = values(rule);
    return {shortened ? own.flag : filled(shape.flag, v), filled(shape.sentence, v)};
  }
  return only_groups(rule).value_or(own);
}

bool is_of_istio(const Rule& rule) {
  const auto known = [](const Rule& named) {
    // Rules of one kind follow each other: thousands of excluded ranges.
    static thread_local std::size_t last = 0;
    if (has_shape(named, shapes()[last])) return true;
    const auto found = std::ranges::find_if(shapes(), [&](const Shape& shape) { return has_shape(named, shape); });
    if (found == shapes().end()) return only_groups(named).has_value();
    last = static_cast<std::size_t>(found - shapes().begin());
    return true;
  };
  return is_istio_nftables(rule.chain) || is_builtin(rule.chain) ? known(in_iptables_names(rule)) : known(rule);
}

bool is_istio_chain(std::string_view chain) {
  static constexpr std::string_view names[] = {istio_inbound,    istio_in_redirect, istio_output, istio_redirect,
                                               istio_output_dns, istio_divert,      istio_tproxy, istio_drop};
  return std::ranges::find(names, chain) != std::end(names);
}

std::string short_words(const Rule& rule) {
  const auto shorten = [](auto& values) -> std::size_t {
    if (values.size() <= shown_of_list) return 0;
    const std::size_t more = values.size() - shown_of_list;
    values.resize(shown_of_list);
    return more;
  };
  std::string text;
  for (Match match : rule.matches) {
    std::size_t more = 0;
    if (auto* m = std::get_if<AddressMatch>(&match)) more = shorten(m->ranges);
    if (auto* m = std::get_if<PortMatch>(&match)) more = shorten(m->ports);
    if (auto* m = std::get_if<OwnerMatch>(&match)) more = shorten(m->ids);
    text += (text.empty() ? "" : " ") + iptables_words(match);
    if (more > 0) text += fmt::format(",...(+{})", more);
  }
  const std::string target = iptables_words(rule.target);
  if (target.empty()) return text;
  return text.empty() ? target : text + " " + target;
}

std::string_view whose(const Live& live, const LiveChain& chain) {
  if (!chain.ours) return "other";
  if (live.backend != BackendKind::nftables) return "Istio or Sidetrack";  // the same names
  return is_istio_nftables(chain.name) ? "Istio" : "Sidetrack";
}

std::string_view whose(const Live& live, const LiveChain& chain, const LiveRule& rule) {
  if (!rule.ours) return "other";
  if (live.backend != BackendKind::nftables) return "Istio or Sidetrack";
  if (!is_builtin(chain.name)) return whose(live, chain);
  // Their base chains bear the names of the hooks, as ours do.
  if (const auto* jump = std::get_if<Jump>(&rule.rule.target))
    return is_istio_nftables(jump->chain) ? "Istio" : "Sidetrack";
  const auto starts = [&](const char* with) {
    return std::ranges::any_of(live.own_tables, [&](const std::string& table) { return table.starts_with(with); });
  };
  return starts("inet istio-proxy-") && !starts("inet sidetrack") ? "Istio" : "Sidetrack";
}

}  // namespace sidetrack
