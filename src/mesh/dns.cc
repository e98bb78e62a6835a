// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/builder.h"

namespace sidetrack {
namespace {

using namespace words;

constexpr std::uint16_t dns_port = 53;
constexpr std::uint16_t proxy_dns_port = 15053;  // where the agent's DNS server listens

// The servers whose traffic is captured. --capture-all-dns: one without an address, for all families.
struct Server {
  Families families;
  std::vector<Match> to;    // -d SERVER/32
  std::vector<Match> from;  // -s SERVER/32
  std::string text;
};

std::vector<Server> servers(const Builder& build) {
  if (build.config.capture_all_dns) return {{build.facts.families, {}, {}, "any server"}};
  std::vector<Server> result;
  for (const Address& address : build.facts.dns_servers) {
    const AddressRange range = AddressRange::single(address);
    result.push_back({address.family, {destination(range)}, {source(range)}, address.text()});
  }
  return result;
}

std::vector<Match> with(std::vector<Match> matches, const std::vector<Match>& more) {
  matches.insert(matches.end(), more.begin(), more.end());
  return matches;
}

// The app's query to a server and the agent's own query to the same server may use the same source port. Two conntrack
// zones keep these two flows apart, which would otherwise be one.
void zones_of_proxy(Builder& build, OwnerKind kind, std::uint32_t id) {
  const std::string flag = "--redirect-dns";
  const std::string who = (kind == OwnerKind::uid ? "uid " : "gid ") + std::to_string(id);
  build.append(Table::raw, istio_output_dns, {udp, dport(dns_port), owner(kind, id)}, CtZone{1},
               {flag, "the proxy's (" + who + ") own queries are tracked apart, in zone 1"});
  build.append(Table::raw, istio_output_dns, {udp, sport(proxy_dns_port), owner(kind, id)}, CtZone{2},
               {flag, "the proxy's (" + who + ") answers to the app are tracked in zone 2"});
}

}  // namespace

// 12.
void dns(Builder& build) {
  if (!build.captures_dns()) return;
  const Config& config = build.config;
  const std::string flag = config.capture_all_dns ? "--capture-all-dns" : "--redirect-dns";

  build.append(Table::raw, output, {}, Jump{istio_output_dns}, {flag, "DNS is given its conntrack zones"});
  build.append(build.dns_families(), Table::nat, istio_output, {}, Jump{istio_output_dns}, {flag, "DNS is looked at"});
  for (const ProtocolMatch& protocol : {tcp, udp}) {
    for (const Server& server : servers(build)) {
      build.append(server.families, Table::nat, istio_output_dns, with({protocol, dport(dns_port)}, server.to),
                   Redirect{proxy_dns_port},
                   {flag, "DNS over " + std::string(name(protocol.protocol)) + " to " + server.text +
                              " goes to the proxy's resolver, port 15053"});
    }
  }
  for (std::uint32_t uid : config.proxy_uids) zones_of_proxy(build, OwnerKind::uid, uid);
  for (std::uint32_t gid : config.proxy_gids) zones_of_proxy(build, OwnerKind::gid, gid);

  build.append(build.dns_families(), Table::raw, prerouting, {}, Jump{istio_inbound},
               {flag, "answers of DNS servers are given their conntrack zone"});
  for (const Server& server : servers(build)) {
    build.append(server.families, Table::raw, istio_output_dns, with({udp, dport(dns_port)}, server.to), CtZone{2},
                 {flag, "the app's queries to " + server.text + " are tracked in zone 2"});
    build.append(server.families, Table::raw, istio_inbound, with({udp, sport(dns_port)}, server.from), CtZone{1},
                 {flag, "answers of " + server.text + " to the proxy belong to zone 1"});
  }
}

}  // namespace sidetrack
