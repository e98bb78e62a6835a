// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/other_meshes.h"

#include <algorithm>
#include <array>

#include "model/ports.h"

namespace sidetrack {
namespace {

// From the programs that write the rules: linkerd2-proxy-init, kuma's transparent proxy, consul's iptables, osm's
// init container, aws-appmesh-proxy-route-manager, telepresence's agent, mirrord's agent, apisix-mesh-agent.
struct OtherMesh {
  std::string_view name;
  std::string_view chains;  // how their names begin
  std::array<NamedPort, 5> ports{};
};
constexpr OtherMesh known_meshes[] = {
    {"Linkerd",
     "PROXY_INIT_",
     {{{4140, "Linkerd outbound"}, {4143, "Linkerd inbound"}, {4190, "Linkerd control"}, {4191, "Linkerd admin"}}}},
    {"Kuma", "KUMA_MESH_"},
    {"Kuma", "MESH_INBOUND"},
    {"Kuma", "MESH_OUTBOUND"},
    {"Consul", "CONSUL_", {{{15001, "Envoy outbound"}, {20000, "Envoy inbound"}, {8600, "Consul DNS"}}}},
    {"Open Service Mesh",
     "OSM_PROXY_",
     {{{15000, "Envoy admin"},
       {15001, "Envoy outbound"},
       {15003, "Envoy inbound"},
       {15010, "Envoy Prometheus telemetry"}}}},
    {"App Mesh", "APPMESH_", {{{15000, "Envoy inbound"}, {15001, "Envoy outbound"}}}},
    {"Cilium", "CILIUM_"},
    {"Telepresence", "TEL_INBOUND"},
    {"Telepresence", "TEL_OUTBOUND"},
    {"mirrord", "MIRRORD_"},
    {"apisix-mesh-agent", "APISIX_"},
};

}  // namespace

std::string_view mesh_of_chain(std::string_view chain) {
  const auto* found =
      std::ranges::find_if(known_meshes, [&](const OtherMesh& each) { return chain.starts_with(each.chains); });
  return found != std::end(known_meshes) ? found->name : "";
}

std::string_view mesh_of_rule(const Rule& rule) {
  const auto* jump = std::get_if<Jump>(&rule.target);
  const std::string_view own = mesh_of_chain(rule.chain);
  return own.empty() && jump != nullptr ? mesh_of_chain(jump->chain) : own;
}

std::optional<std::string_view> port_of_mesh(std::string_view mesh, std::uint16_t port) {
  const auto* found = std::ranges::find(known_meshes, mesh, &OtherMesh::name);
  if (found == std::end(known_meshes) || found->ports.front().port == 0) return {};
  const auto* named = std::ranges::find(found->ports, port, &NamedPort::port);
  return named != found->ports.end() ? named->name : "";
}

void add_other_meshes(const Live& live, std::vector<std::string_view>& meshes) {
  for (const LiveChain& chain : live.chains) {
    if (!chain.hook) continue;
    for (const LiveRule& each : chain.rules) {
      if (each.ours || each.of_agent || !std::holds_alternative<Jump>(each.rule.target)) continue;
      const std::string_view mesh = mesh_of_rule(each.rule);
      if (!mesh.empty() && std::ranges::find(meshes, mesh) == meshes.end()) meshes.push_back(mesh);
    }
  }
}

}  // namespace sidetrack
