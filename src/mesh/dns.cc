// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>

#include "mesh/builder.h"
#include "model/ports.h"

namespace sidetrack {
namespace {

using namespace words;

// The app's query to a server and the agent's own query to the same server may use the same source port. Two conntrack
// zones keep these two flows apart, which would otherwise be one.
void zones_of_proxy(Builder& build, OwnerKind kind, std::uint32_t id) {
  build.add(MeshRule::dns_proxy_query, {owner(kind, id)});
  build.add(MeshRule::dns_proxy_answer, {owner(kind, id)});
}

// Whose queries go to the servers themselves.
std::vector<Match> excluded(const Config& config) {
  std::vector<Match> all;
  for (const IdRange& uids : config.exclude_uids) all.emplace_back(owner(OwnerKind::uid, uids));
  for (const IdRange& gids : config.exclude_gids) all.emplace_back(owner(OwnerKind::gid, gids));
  for (const Cgroup& each : config.bypass_cgroups) all.emplace_back(cgroup(each));
  for (const UidPorts& each : config.exclude_uid_ports) {
    if (std::ranges::any_of(each.ports, [](const PortRange& ports) { return ports.contains(dns_port); }))
      all.emplace_back(owner(OwnerKind::uid, each.uids));
  }
  return all;
}

// In the zone in which the answers come back: from outside zone 1 (dns_answer), over lo none.
void zones_of_excluded(Builder& build, const std::vector<AddressRange>& servers) {
  for (const Match& sender : excluded(build.config)) {
    build.add(MeshRule::dns_excluded_over_lo, {sender}, {.families = build.dns_families()});
    if (build.config.capture_all_dns) build.add(MeshRule::dns_excluded_query, {sender});
    for (const AddressRange& server : servers) build.add(MeshRule::dns_excluded_query, {destination(server), sender});
  }
}

// Answers come back in zone 1 (dns_answer): tracked in another one, the query's source would not be translated back.
void zones_of_forwarded(Builder& build, const std::vector<AddressRange>& servers) {
  if (!build.config.track_forwarded_dns) return;
  for (const std::string& name : build.config.virtual_interfaces) {
    if (build.config.capture_all_dns) build.add(MeshRule::dns_forwarded_query, {in(name)});
    for (const AddressRange& server : servers)
      build.add(MeshRule::dns_forwarded_query, {in(name), destination(server)});
  }
}

}  // namespace

void dns(Builder& build) {
  if (!build.captures_dns()) return;
  const Config& config = build.config;
  const char* flag = config.capture_all_dns ? "--capture-all-dns" : "--redirect-dns";
  std::vector<AddressRange> servers;  // unless all are meant
  if (!config.capture_all_dns)
    std::ranges::transform(build.facts.dns_servers, std::back_inserter(servers), AddressRange::single);

  build.add(MeshRule::dns_zone_jump, {}, {.flag = flag});
  build.add(MeshRule::dns_jump, {}, {.flag = flag, .families = build.dns_families()});
  for (const ProtocolMatch& protocol : {tcp, udp}) {
    const RowOverrides to_proxy{.target = Redirect{proxy_dns_port}};
    if (config.capture_all_dns) build.add(MeshRule::dns_redirect, {protocol}, to_proxy);
    for (const AddressRange& server : servers) {
      build.add(MeshRule::dns_redirect, {protocol, destination(server)}, to_proxy);
    }
  }
  for (std::uint32_t uid : config.proxy_uids) zones_of_proxy(build, OwnerKind::uid, uid);
  for (std::uint32_t gid : config.proxy_gids) zones_of_proxy(build, OwnerKind::gid, gid);
  zones_of_excluded(build, servers);

  build.add(MeshRule::dns_answer_jump, {}, {.flag = flag, .families = build.dns_families()});
  if (config.capture_all_dns) {
    build.add(MeshRule::dns_query);
    build.add(MeshRule::dns_answer);
  }
  for (const AddressRange& server : servers) {
    build.add(MeshRule::dns_query, {destination(server)});
    build.add(MeshRule::dns_answer, {source(server)});
  }
  zones_of_forwarded(build, servers);
}

}  // namespace sidetrack
