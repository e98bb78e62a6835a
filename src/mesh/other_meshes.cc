// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/other_meshes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>

#include "mesh/istio_rules.h"
#include "mesh/ownership.h"
#include "mesh/returned_owners.h"
#include "model/printable.h"
#include "model/scan.h"
#include "rule/iptables.h"

namespace sidetrack {
namespace {

// Names what a mesh writes into built-in chains without a mark of its own.
enum class Unmarked : std::uint8_t {
  none,
  dns,     // -p udp --dport 53 with RETURN, REDIRECT to its DNS or CT --zone: the shapes of Istio before 1.25
  kuma,    // those, and what Kuma before 2.9 writes for its options
  owners,  // -m owner --uid-owner UID -j RETURN
};

struct OtherMesh {
  std::string_view name;
  std::string_view option;   // of clean --mesh; empty: an agent of the node would write its rules again
  std::string_view comment;  // how the comments of its rules begin
  std::array<NamedPort, 5> ports{};
  std::array<std::uint32_t, 2> ids{};  // of its proxy: uids, and gids where it has any
  Unmarked unmarked = Unmarked::none;
  std::uint32_t mark = 0;                      // of its policy rule, for what its proxy sends
  std::array<std::string_view, 1> tables{{}};  // of the family inet, its own
};

// From the programs that write the rules: linkerd2-proxy-init, kuma's transparent proxy, consul's iptables and
// nftables, osm's init container, aws-appmesh-proxy-route-manager, telepresence's agent, mirrord's agent,
// apisix-mesh-agent, polaris-sidecar-init.
constexpr OtherMesh known_meshes[] = {
    {"Linkerd",
     "linkerd",
     "proxy-init/",
     {{{4140, "Linkerd outbound"}, {4143, "Linkerd inbound"}, {4190, "Linkerd control"}, {4191, "Linkerd admin"}}},
     {2102, 1337}},
    {"Kuma",
     "kuma",
     "kuma/mesh/",
     {{{9901, "Envoy admin"},
       {15001, "Envoy outbound"},
       {15006, "Envoy inbound"},
       {15010, "Envoy inbound of IPv6"},
       {15053, "Kuma DNS"}}},
     {5678},
     Unmarked::kuma},
    {"Consul",
     "consul",
     "",
     {{{15001, "Envoy outbound"}, {20000, "Envoy inbound"}, {8600, "Consul DNS"}}},
     {5995},
     Unmarked::none,
     0,
     {"consul_tproxy"}},
    {"Open Service Mesh",
     "osm",
     "",
     {{{15000, "Envoy admin"},
       {15001, "Envoy outbound"},
       {15003, "Envoy inbound"},
       {15010, "Envoy Prometheus telemetry"},
       {15901, "liveness probes"}}},
     {1500, 1337}},
    {"App Mesh",
     "app-mesh",
     "",
     {{{15000, "Envoy inbound"}, {15001, "Envoy outbound"}}},
     {1337},
     Unmarked::none,
     0x1e7700ce},
    {"Cilium", "", ""},
    {"Telepresence", "telepresence", "", {{{9900, "Telepresence agent"}}}, {7777}, Unmarked::owners},
    {"mirrord", "mirrord", ""},
    {"apisix-mesh-agent", "apisix", "", {{{9080, "APISIX outbound"}, {9081, "APISIX inbound"}}}, {}, Unmarked::owners},
    {"Polaris", "polaris", "", {{{proxy_dns_port, "Polaris DNS"}}}, {1337}, Unmarked::dns},
};

// The chains of a mesh: how their names begin, and the rest of those that its program makes; ? is a letter or a digit,
// * at the end several.
struct Chains {
  std::string_view mesh;
  std::string_view prefix;
  std::string_view rest;
};
constexpr Chains known_chains[] = {
    {"Linkerd", "PROXY_INIT_", "OUTPUT|REDIRECT"},
    {"Kuma", "KUMA_MESH_", "INBOUND|OUTBOUND|INBOUND_REDIRECT|OUTBOUND_REDIRECT"},
    {"Kuma", "MESH_", "INBOUND|OUTBOUND|INBOUND_REDIRECT|OUTBOUND_REDIRECT|OUTPUT|REDIRECT|IN_REDIRECT"},
    {"Consul", "CONSUL_",
     "PROXY_INBOUND|PROXY_IN_REDIRECT|PROXY_OUTPUT|PROXY_REDIRECT|DNS_REDIRECT|NAT_OUTPUT|NAT_PREROUTING"},
    {"Open Service Mesh", "OSM_PROXY_", "INBOUND|IN_REDIRECT|OUTBOUND|OUT_REDIRECT"},
    {"App Mesh", "APPMESH_", "INGRESS|EGRESS"},
    {"Cilium", "CILIUM_",
     "INPUT|OUTPUT|FORWARD|PREROUTING|PRE_raw|OUTPUT_raw|PRE_mangle|POST_mangle|PRE_nat|OUTPUT_nat|POST_nat"},
    {"Telepresence", "TEL_",
     "PREROUTING_TCP|PREROUTING_UDP|OUTPUT_TCP|OUTPUT_UDP|MESH_BYPASS|"
     "INBOUND|INBOUND_TCP|INBOUND_UDP|OUTBOUND|OUTBOUND_TCP|OUTBOUND_UDP"},  // before 2.20
    {"mirrord", "MIRRORD_",
     "INPUT|INPUT_?????|OUTPUT|OUTPUT_?????|STANDARD|STANDARD_?????|EXCLUDE_FROM_MESH"},  // the id of an agent
    {"mirrord", "MRD", "IN_*|OUT_*|STD_*|MSH_*|_ROUTE_LOCALNET"},
    {"apisix-mesh-agent", "APISIX_", "REDIRECT|INBOUND|INBOUND_REDIRECT"},
    {"Polaris", "POLARIS_", "INBOUND|OUTPUT|REDIRECT"},
};

bool is_of_form(std::string_view name, std::string_view form) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  if (form.ends_with('*')) {
    form.remove_suffix(1);
    if (name.size() <= form.size() || !std::ranges::all_of(name.substr(form.size()), is_word)) return false;
    name = name.substr(0, form.size());
  }
  return std::ranges::equal(name, form, [&](char c, char of) { return c == of || (of == '?' && is_word(c)); });
}

// The row by whose prefix the name begins.
const Chains* chains_of(std::string_view chain) {
  const auto* found =
      std::ranges::find_if(known_chains, [&](const Chains& each) { return chain.starts_with(each.prefix); });
  return found != std::end(known_chains) ? found : nullptr;
}

const OtherMesh* mesh_named(std::string_view name) {
  const auto* found = std::ranges::find(known_meshes, name, &OtherMesh::name);
  return found != std::end(known_meshes) ? found : nullptr;
}

// Whether that mesh's program makes the chain.
bool makes_chain(const MeshRules& mesh, std::string_view chain) { return mesh_of_chain(chain) == mesh.name; }

bool has_comment(const Rule& rule, std::string_view prefix) {
  return !prefix.empty() && std::ranges::any_of(rule.matches, [&](const Match& match) {
    const auto* comment = std::get_if<CommentMatch>(&match);
    return comment != nullptr && comment->text.starts_with(prefix);
  });
}

// Tells whether it leads all addresses, or DNS, there: a jump for one address is another program's, or Telepresence's.
bool jumps_to(const MeshRules& mesh, const Rule& rule) {
  const auto* jump = std::get_if<Jump>(&rule.target);
  if (jump == nullptr || !makes_chain(mesh, jump->chain)) return false;
  bool of_address = false, of_dns = false;
  for (const Match& match : rule.matches) {
    const auto* address = std::get_if<AddressMatch>(&match);
    const auto* port = std::get_if<PortMatch>(&match);
    of_address = of_address || (address != nullptr && !address->negated);
    of_dns = of_dns || (port != nullptr && port->ports.size() == 1 && port->ports.front() == PortRange(dns_port));
  }
  return !of_address || of_dns;
}

const OwnerMatch* owner_of(const Rule& rule) {
  for (const Match& match : rule.matches) {
    const auto* owner = std::get_if<OwnerMatch>(&match);
    if (owner != nullptr && !owner->negated && owner->ids.size() == 1) return owner;
  }
  return nullptr;
}

bool returns_owner(const Rule& rule) { return rule.target == Target(Verdict::return_) && owner_of(rule) != nullptr; }

// Tells whether it asks for one of these ports alone.
bool asks_for_port(const Match& match, const std::set<std::uint16_t>& ports) {
  const auto* port = std::get_if<PortMatch>(&match);
  if (port == nullptr || port->negated || port->ports.size() != 1) return false;
  const PortRange range = port->ports.front();
  return range.first == range.last && ports.contains(range.first);
}

bool asks_for_dns(const Match& match) { return asks_for_port(match, {dns_port}); }

bool is_redirect_to(const Rule& rule, const std::set<std::uint16_t>& ports) {
  const auto* redirect = std::get_if<Redirect>(&rule.target);
  return redirect != nullptr && ports.contains(redirect->port);
}

bool leaves_owner(const Rule& rule) {
  // -p udp --dport 53 -m owner --uid-owner UID -j DOCKER_OUTPUT: Kuma with another chain for its own queries
  return returns_owner(rule) || (std::holds_alternative<Jump>(rule.target) && owner_of(rule) != nullptr);
}

// Returns the ports of the proxy's DNS: 15053, or as the mesh's own chains have it: -p tcp --dport 53 -j REDIRECT
// --to-ports PORT; or where OUTPUT leads the DNS of all but the proxy, by the rule behind the proxy's. None where
// OUTPUT does not lead DNS there: what looks like a part of it is another program's then.
std::set<std::uint16_t> dns_ports_of(const std::vector<LiveChain>& chains, const ReturnedOwners& owners) {
  std::set<std::uint16_t> ports{proxy_dns_port};
  for (const LiveChain& chain : chains) {
    const bool is_output = chain.table == Table::nat && chain.name == name(Hook::output);
    bool leaves_proxy = false;  // the rule before
    for (const LiveRule& live : chain.rules) {
      const bool is_of_dns = std::ranges::any_of(live.rule.matches, asks_for_dns);
      const auto* redirect = std::get_if<Redirect>(&live.rule.target);
      if ((chain.ours || leaves_proxy) && redirect != nullptr && is_of_dns) ports.insert(redirect->port);
      leaves_proxy = is_output && is_of_dns && leaves_owner(live.rule) && owners.name(live.rule);
    }
  }
  const bool is_led = std::ranges::any_of(chains, [&](const LiveChain& chain) {
    return chain.table == Table::nat && chain.name == name(Hook::output) &&
           std::ranges::any_of(chain.rules, [&](const LiveRule& live) {
             return is_redirect_to(live.rule, ports) && std::ranges::any_of(live.rule.matches, asks_for_dns);
           });
  });
  return is_led ? ports : std::set<std::uint16_t>();
}

// -p udp --dport 53, from the proxy's resolver, of an owner, to a server; with nothing else. The proxy's own queries
// have zone 1, those that it answers zone 2.
bool is_about_dns(const Rule& rule, const std::set<std::uint16_t>& proxy_ports) {
  bool of_dns = false, of_tcp = false, of_others = false;
  for (const Match& match : rule.matches) {
    if (match == Match(ProtocolMatch{Protocol::udp})) continue;
    of_tcp = of_tcp || match == Match(ProtocolMatch{Protocol::tcp});
    if (of_tcp && std::holds_alternative<ProtocolMatch>(match)) continue;
    const auto* owner = std::get_if<OwnerMatch>(&match);
    const bool is_dns = asks_for_dns(match) || asks_for_port(match, proxy_ports);
    if (!is_dns && owner == nullptr && !std::holds_alternative<AddressMatch>(match)) return false;
    of_dns = of_dns || is_dns;
    of_others = of_others || (owner != nullptr && owner->negated);
  }
  if (!of_dns) return false;
  // -p tcp --dport 53 -m owner ! --uid-owner UID -j RETURN, of Kuma 2.14
  if (of_tcp) return of_others && rule.target == Target(Verdict::return_);
  const auto* zone = std::get_if<CtZone>(&rule.target);
  const bool is_zone = zone != nullptr && (zone->zone == 1 || zone->zone == 2);
  return leaves_owner(rule) || is_zone || is_redirect_to(rule, proxy_ports);
}

// Returns the owner that a rule names, for whom or for all but whom it is.
std::optional<OwnerMatch> named_owner(const Rule& rule) {
  std::optional<OwnerMatch> named;
  for (const Match& match : rule.matches) {
    const auto* owner = std::get_if<OwnerMatch>(&match);
    if (owner == nullptr) continue;
    if (named) return {};
    named = OwnerMatch{owner->kind, owner->ids, false};
  }
  return named;
}

// Tells whether a rule of OUTPUT has the shape of Telepresence's for its agent:
//   -d POD_IP -p tcp -m owner [!] --uid-owner UID -j TEL_OUTPUT_TCP
//   -p tcp -m owner --uid-owner UID -m tcp ! --dport 53 -j RETURN; without ports in older ones
bool is_about_agent(const MeshRules& mesh, const Rule& rule) {
  const auto* jump = std::get_if<Jump>(&rule.target);
  const bool leads = jump != nullptr && makes_chain(mesh, jump->chain);
  if (!leads && !returns_owner(rule)) return false;
  return std::ranges::all_of(rule.matches, [&](const Match& match) {
    if (const auto* address = std::get_if<AddressMatch>(&match)) return leads && address->end == End::destination;
    const auto* port = std::get_if<PortMatch>(&match);
    if (port != nullptr) return !leads && *port == PortMatch{End::destination, {dns_port}, true};
    return std::holds_alternative<ProtocolMatch>(match) || std::holds_alternative<OwnerMatch>(match);
  });
}

// Marks the rules for an owner for whom another rule of the chain leads to the mesh: -o lo -m owner ! --uid-owner UID.
void mark_rules_of_agent(const MeshRules& mesh, LiveChain& chain) {
  if (chain.table != Table::nat || chain.name != name(Hook::output)) return;
  std::vector<OwnerMatch> owners;
  for (const LiveRule& live : chain.rules) {
    const auto owner = live.ours ? named_owner(live.rule) : std::nullopt;
    if (owner) owners.push_back(*owner);
  }
  for (LiveRule& live : chain.rules) {
    const auto owner = named_owner(live.rule);
    const bool is_agents = owner && std::ranges::find(owners, *owner) != owners.end();
    live.ours = live.ours || (is_agents && is_about_agent(mesh, live.rule));
  }
}

// Returns the interface of a rule of Kuma for a network of containers, nullptr if it has another shape:
//   -i docker0 -p udp --dport 53 -j REDIRECT --to-ports 15053
//   ! -d 172.17.0.0/16 -i docker0 -p tcp -j REDIRECT --to-ports 15001
const InterfaceMatch* network_of(const LiveChain& chain, const Rule& rule, Protocol protocol) {
  if (chain.table != Table::nat || chain.name != name(Hook::prerouting)) return nullptr;
  if (!std::holds_alternative<Redirect>(rule.target) || rule.matches.size() != 3) return nullptr;
  const InterfaceMatch* interface = nullptr;
  for (const Match& match : rule.matches) {
    const auto* address = std::get_if<AddressMatch>(&match);
    const bool is_rest = protocol == Protocol::udp
                             ? match == Match(PortMatch{End::destination, {dns_port}, false})
                             : address != nullptr && address->end == End::destination && address->negated;
    if (is_rest || match == Match(ProtocolMatch{protocol})) continue;
    interface = std::get_if<InterfaceMatch>(&match);
    if (interface == nullptr || interface->negated) return nullptr;
  }
  return interface;
}

// Marks the two rules for a network where that of TCP leads to a port of the mesh.
void mark_networks(LiveChain& chain, const std::set<std::uint16_t>& ports) {
  std::set<std::string_view> interfaces;
  for (LiveRule& live : chain.rules) {
    const InterfaceMatch* network = network_of(chain, live.rule, Protocol::tcp);
    if (network == nullptr || !is_redirect_to(live.rule, ports)) continue;
    live.ours = true;
    interfaces.insert(network->name);
  }
  for (LiveRule& live : chain.rules) {
    const InterfaceMatch* network = network_of(chain, live.rule, Protocol::udp);
    live.ours = live.ours || (network != nullptr && interfaces.contains(network->name));
  }
}

// Tells whether Kuma before 2.9 may have written it for its options, without a mark:
//   the rules for networks
//   -t mangle -A PREROUTING -m conntrack --ctstate INVALID -j DROP
//   -A OUTPUT -p tcp -m multiport --dports 80 -m owner --uid-owner 4 -j RETURN
bool may_be_kumas(const LiveChain& chain, const Rule& rule) {
  if (chain.table == Table::mangle)
    return chain.name == name(Hook::prerouting) && rule.target == Target(Verdict::drop) &&
           rule.matches == std::vector<Match>{ConntrackStateMatch{ConntrackStateMatch::invalid}};
  const bool of_output = chain.table == Table::nat && chain.name == name(Hook::output);
  return network_of(chain, rule, Protocol::udp) != nullptr || network_of(chain, rule, Protocol::tcp) != nullptr ||
         (of_output && returns_owner(rule));
}

bool may_be_unmarked(const OtherMesh& mesh, const LiveChain& chain, const Rule& rule,
                     const std::set<std::uint16_t>& dns_ports) {
  if (!is_builtin(chain.name)) return false;
  if (mesh.unmarked == Unmarked::owners) return chain.table == Table::nat && returns_owner(rule);
  return mesh.unmarked != Unmarked::none && is_about_dns(rule, dns_ports);
}

void mark_rules(const MeshRules& mesh, std::vector<LiveChain>& chains) {
  const OtherMesh& known = *mesh_named(mesh.name);
  Families with_mesh;
  Families with_istio;  // whose rules for DNS have the same shapes
  ReturnedOwners owners;
  std::set<std::uint16_t> ports;
  for (LiveChain& chain : chains) {
    const bool changed = std::ranges::find(changed_tables, chain.table) != std::end(changed_tables);
    chain.ours = changed && makes_chain(mesh, chain.name);
    if (chain.ours) with_mesh = with_mesh | chain.families;
    if (is_istio_chain(chain.name)) with_istio = with_istio | chain.families;
    for (LiveRule& live : chain.rules) {
      live.ours = chain.ours || (changed && is_builtin(chain.name) &&
                                 (jumps_to(mesh, live.rule) || has_comment(live.rule, known.comment)));
      if (!chain.ours) continue;
      owners.add(live.rule);
      if (const auto* redirect = std::get_if<Redirect>(&live.rule.target)) ports.insert(redirect->port);
    }
    if (known.unmarked == Unmarked::owners) mark_rules_of_agent(mesh, chain);
  }
  const std::set<std::uint16_t> dns_ports = dns_ports_of(chains, owners);
  const auto is_of_proxy = [&](const Rule& rule) {
    return std::holds_alternative<Jump>(rule.target) ? owners.name(rule) : owners.cover(rule);
  };
  if (known.unmarked != Unmarked::dns && known.unmarked != Unmarked::kuma) return;
  for (LiveChain& chain : chains) {
    const bool beside = (chain.families & with_mesh) == chain.families && (chain.families & with_istio).empty();
    if (!beside) continue;
    if (known.unmarked == Unmarked::kuma) mark_networks(chain, ports);
    if (dns_ports.empty()) continue;
    for (LiveRule& live : chain.rules)
      live.ours = live.ours || (is_of_proxy(live.rule) && may_be_unmarked(known, chain, live.rule, dns_ports));
  }
}

// Returns whether more than the name of one chain, which others may use, says that it is this mesh: two of its chains,
// or a rule in one with its comment, its proxy's port or its proxy's id. Of those whose proxies have none of these a
// name is enough.
bool is_whole(const Live& live, const OtherMesh& mesh) {
  if (mesh.ports.front().port == 0) return true;
  const LiveChain* first = nullptr;
  for (const LiveChain& chain : live.chains) {
    if (mesh_of_chain(chain.name) != mesh.name) continue;
    if (first != nullptr && first->name != chain.name) return true;
    first = &chain;
    for (const LiveRule& each : chain.rules) {
      const auto port = listening_port(each.rule.target);
      const bool leads_to_proxy = port && std::ranges::find(mesh.ports, *port, &NamedPort::port) != mesh.ports.end();
      if (leads_to_proxy || has_comment(each.rule, mesh.comment) || !sentence_of_other_mesh(each.rule).empty())
        return true;
    }
  }
  return false;
}

}  // namespace

std::string_view mesh_of_chain(std::string_view chain) {
  const Chains* found = chains_of(chain);
  if (found == nullptr) return "";
  const std::string_view rest = chain.substr(found->prefix.size());
  const bool is_made =
      std::ranges::any_of(split(found->rest, "|"), [&](std::string_view form) { return is_of_form(rest, form); });
  return is_made ? found->mesh : "";
}

std::string_view mesh_of_rule(const Rule& rule) {
  const auto* jump = std::get_if<Jump>(&rule.target);
  std::string_view mesh = mesh_of_chain(rule.chain);
  if (mesh.empty() && jump != nullptr) mesh = mesh_of_chain(jump->chain);
  if (!mesh.empty()) return mesh;
  const auto* marked =
      std::ranges::find_if(known_meshes, [&](const OtherMesh& each) { return has_comment(rule, each.comment); });
  return marked != std::end(known_meshes) ? marked->name : "";
}

bool is_other_mesh(std::string_view name) { return mesh_named(name) != nullptr; }

std::span<const NamedPort> known_ports(const Rule& rule) {
  const OtherMesh* mesh = mesh_named(mesh_of_rule(rule));
  if (mesh == nullptr || mesh->ports.front().port == 0) return named_ports;
  return std::span(mesh->ports.begin(), std::ranges::find(mesh->ports, 0, &NamedPort::port));
}

std::string sentence_of_other_mesh(const Rule& rule) {
  const OtherMesh* mesh = mesh_named(mesh_of_rule(rule));
  const OwnerMatch* owner = owner_of(rule);
  if (mesh == nullptr || owner == nullptr || !returns_owner(rule)) return "";
  const IdRange ids = owner->ids.front();
  if (ids.first == 0 || ids.first != ids.last || std::ranges::find(mesh->ids, ids.first) == mesh->ids.end()) return "";
  return fmt::format("traffic of {}'s proxy, {} {}, is not captured", mesh->name,
                     owner->kind == OwnerKind::uid ? "uid" : "gid", ids.first);
}

void add_other_meshes(const Live& live, std::vector<std::string_view>& meshes) {
  for (const LiveChain& chain : live.chains) {
    if (!chain.hook) continue;
    for (const LiveRule& each : chain.rules) {
      if (each.ours || each.of_agent || !std::holds_alternative<Jump>(each.rule.target)) continue;
      const std::string_view mesh = mesh_of_rule(each.rule);
      if (!mesh.empty() && std::ranges::find(meshes, mesh) == meshes.end() && is_whole(live, *mesh_named(mesh)))
        meshes.push_back(mesh);
    }
  }
}

std::string_view option_of_mesh(std::string_view name) {
  const OtherMesh* mesh = mesh_named(name);
  return mesh != nullptr ? mesh->option : "";
}

MeshRules rules_of_mesh(std::string_view option) {
  const OtherMesh& mesh = *std::ranges::find(known_meshes, option, &OtherMesh::option);
  MeshRules rules = istio_rules;
  rules.name = mesh.name;
  rules.mark = mesh.mark;
  rules.tables = mesh.tables;
  rules.mark_ours = mark_rules;
  rules.has_chain = makes_chain;
  rules.iptables_name = [](std::string chain) { return chain; };
  rules.leave_to_agents = [](Live&, bool) { return false; };
  return rules;
}

std::vector<std::string> left_by_mesh(const MeshRules& mesh, std::span<const Live* const> seen) {
  const OtherMesh& known = *mesh_named(mesh.name);
  const std::set<std::uint16_t> usual{proxy_dns_port};
  std::vector<std::string> left;
  for (const Live* live : seen) {
    for (const LiveChain& chain : live->chains) {
      const std::string place =
          fmt::format("{}: {} ({})", name(live->backend), printable(chain.table_name), names(chain.families));
      const Chains* of_prefix = chains_of(chain.name);
      if (!chain.ours && of_prefix != nullptr && of_prefix->mesh == mesh.name)
        left.push_back(
            fmt::format("{}: the chain {} stays: {} makes none of that name", place, printable(chain.name), mesh.name));
      for (const LiveRule& each : chain.rules) {
        const bool may_be = may_be_unmarked(known, chain, each.rule, usual) ||
                            (known.unmarked == Unmarked::kuma && may_be_kumas(chain, each.rule));
        if (each.ours || !may_be) continue;
        left.push_back(fmt::format("{}: this rule stays, as it may be another program's and not {}'s: {}", place,
                                   mesh.name, iptables_words(each.rule)));
      }
    }
  }
  return left;
}

}  // namespace sidetrack
