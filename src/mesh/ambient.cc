// SPDX-License-Identifier: GPL-2.0-or-later
// The rules of an ambient pod, as Istio's agent on the node makes them. The proxy, ztunnel, is a process of the node
// with sockets in the pod's namespace: not an owner but a mark tells what it sends. Towards the app it keeps the
// client's address; the mark of the connection and a policy route bring the answers back to it.
#include "mesh/builder.h"

namespace sidetrack {
namespace {

using namespace words;

const Address& probe_address(const Config& config, Family family) {
  return family == Family::ipv4 ? config.probe_address : config.probe_address6;
}

// ! -d LOOPBACK
AddressMatch loopback_destination(Family family) {
  return destination(AddressRange::single(Address::loopback(family)));
}

// -t nat -A ISTIO_PRERT -i INTERFACE -p tcp -j REDIRECT --to-ports 15001; … -j RETURN
void virtual_machines(Builder& build) {
  for (const std::string& name : build.config.virtual_interfaces) {
    build.add(MeshRule::ambient_virtual_machine_redirect, {in(name)}, {.target = Redirect{build.config.proxy_port}});
    build.add(MeshRule::ambient_virtual_machine_return, {in(name)});
  }
}

// The node gives the kubelet's probes this address: ztunnel must not ask them for a certificate.
void probes(Builder& build, MeshRule id, End end) {
  for (Family family : build.facts.families.list()) {
    build.add(id, {AddressMatch{end, {AddressRange::single(probe_address(build.config, family))}, false}});
  }
}

void inbound_to_ztunnel(Builder& build) {
  for (Family family : build.facts.families.list()) {
    build.add(MeshRule::ambient_inbound, {loopback_destination(family), dport(build.config.tunnel_port)},
              {.target = Redirect{build.config.inbound_port}});
  }
}

void dns_to_ztunnel(Builder& build) {
  const RowOverrides to_resolver{.target = Redirect{proxy_dns_port}};
  build.add(MeshRule::ambient_dns_redirect, {udp}, to_resolver);
  for (Family family : build.facts.families.list()) {
    build.add(MeshRule::ambient_dns_redirect, {loopback_destination(family), tcp}, to_resolver);
  }
  build.add(MeshRule::ambient_dns_query);
  build.add(MeshRule::ambient_dns_answer);
  if (!build.config.track_forwarded_dns) return;
  for (const std::string& name : build.config.virtual_interfaces)
    build.add(MeshRule::ambient_dns_forwarded_query, {in(name)});
}

}  // namespace

void ambient(Builder& build) {
  const Config& config = build.config;
  build.add(MeshRule::ambient_inbound_jump, {}, {.table = Table::mangle});
  build.add(MeshRule::outbound_jump, {}, {.table = Table::mangle, .flag = "--dataplane ambient"});
  build.add(MeshRule::outbound_jump, {}, {.flag = "--dataplane ambient"});
  if (config.redirect_dns) {
    build.add(MeshRule::ambient_inbound_jump, {}, {.table = Table::raw, .flag = "--redirect-dns"});
    build.add(MeshRule::outbound_jump, {}, {.table = Table::raw, .flag = "--redirect-dns"});
  }
  build.add(MeshRule::ambient_inbound_jump);
  virtual_machines(build);
  build.add(MeshRule::ambient_mark_connection);
  if (!config.ingress) probes(build, MeshRule::ambient_probe, End::source);
  probes(build, MeshRule::ambient_probe_answer, End::destination);
  if (!config.ingress) inbound_to_ztunnel(build);
  build.add(MeshRule::ambient_restore_mark);
  if (config.redirect_dns) dns_to_ztunnel(build);
  build.add(MeshRule::ambient_answer);
  for (Family family : build.facts.families.list()) {
    build.add(MeshRule::ambient_app_to_itself, {loopback_destination(family)});
  }
  for (Family family : build.facts.families.list()) {
    build.add(MeshRule::ambient_outbound, {loopback_destination(family)}, {.target = Redirect{config.proxy_port}});
  }
}

}  // namespace sidetrack
