// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/builder.h"

namespace sidetrack {

using namespace words;

// -t mangle -A PREROUTING -m conntrack --ctstate INVALID -j ISTIO_DROP
void drop_invalid(Builder& build) {
  if (!build.config.drop_invalid) return;
  build.add(MeshRule::invalid_jump);
  build.add(MeshRule::invalid_drop);
}

// The ends of all redirection, there even when nothing leads to them.
void redirect_chains(Builder& build) {
  const Config& config = build.config;
  build.add(MeshRule::tunnel_port, {dport(config.tunnel_port)});
  build.add(MeshRule::outbound_listener, {}, {.target = Redirect{config.proxy_port}});
  build.add(MeshRule::inbound_listener, {}, {.target = Redirect{config.inbound_port}});
}

namespace {

// -t mangle: ISTIO_DIVERT marks packets for the route to lo; ISTIO_TPROXY hands them to the proxy's socket
void tproxy_chains(Builder& build) {
  const Config& config = build.config;
  build.add(MeshRule::divert_mark, {}, {.target = SetMark{config.tproxy_mark}});
  build.add(MeshRule::divert_accept);
  for (Family family : build.facts.families.list()) {
    build.add(MeshRule::tproxy_listener, {destination(build.loopback(family))},
              {.target = Tproxy{config.inbound_port, config.tproxy_mark}});
  }
}

// Inbound traffic to these ports, or to all, goes to the proxy.
void capture(Builder& build, const std::vector<Match>& ports) {
  if (!build.tproxy()) {
    build.add(MeshRule::inbound_redirect, ports);
    return;
  }
  build.add(MeshRule::inbound_established, ports);
  build.add(MeshRule::inbound_tproxy, ports);
}

void mark_owned(Builder& build, OwnerKind kind, std::uint32_t id) {
  for (Family family : build.facts.families.list()) {
    build.add(MeshRule::tproxy_mark_proxy, {destination(build.loopback(family)), owner(kind, id)},
              {.target = SetMark{outbound_mark}});
  }
}

}  // namespace

// PREROUTING -p tcp -j ISTIO_INBOUND, of all sources or only of those that are asked for, and what that chain captures.
// Whose source is excluded is returned before any port is looked at: that wins over whatever else is asked.
void inbound(Builder& build) {
  const Config& config = build.config;
  if (config.inbound_ports.empty()) return;
  if (build.tproxy()) tproxy_chains(build);
  const RowOverrides in_its_table{.table = build.inbound_table()};
  if (config.inbound_ranges.list.empty()) build.add(MeshRule::inbound_jump, {}, in_its_table);
  for (const AddressRange& range : config.inbound_ranges.list)
    build.add(MeshRule::inbound_jump, {source(range)}, in_its_table);
  for (const AddressRange& range : config.inbound_exclude_ranges)
    build.add(MeshRule::inbound_excluded_range, {source(range)}, in_its_table);
  if (!config.inbound_ports.all) {
    for (const PortRange& ports : config.inbound_ports.list) capture(build, {dport(ports)});
    return;
  }
  for (const PortRange& ports : config.inbound_exclude_ports) {
    build.add(MeshRule::inbound_excluded_port, {dport(ports)}, in_its_table);
  }
  capture(build, {});
}

void tproxy_marks(Builder& build) {
  if (!build.tproxy()) return;
  const Config& config = build.config;
  const std::uint32_t m = config.tproxy_mark;

  build.add(MeshRule::tproxy_save_mark, {mark(m)});
  build.add(MeshRule::tproxy_keep_mark, {mark(m)});
  for (std::uint32_t uid : config.proxy_uids) mark_owned(build, OwnerKind::uid, uid);
  for (std::uint32_t gid : config.proxy_gids) mark_owned(build, OwnerKind::gid, gid);
  build.add(MeshRule::tproxy_restore_mark, {connmark(m)});

  build.add(MeshRule::tproxy_return, {mark(m)});
  for (Family family : build.facts.families.list()) {
    build.add(MeshRule::tproxy_passthrough, {source(AddressRange::single(Address::passthrough(family)))});
  }
  build.add(MeshRule::tproxy_app_to_itself, {mark(outbound_mark)});
}

// --capture-udp: each datagram goes to the transparent listener by itself; there is no connection to divert. What the
// proxy passes on to the app goes over lo. An answer may be for any port that the pod has asked from.
void inbound_udp(Builder& build) {
  const Config& config = build.config;
  if (!build.tproxy() || config.capture_udp.empty()) return;
  for (Family family : build.facts.families.list()) {
    build.add(MeshRule::tproxy_listener, {udp, destination(build.loopback(family))},
              {.target = Tproxy{config.inbound_port, config.tproxy_mark}});
  }
  build.add(MeshRule::inbound_udp_jump);
  build.add(MeshRule::inbound_udp_over_lo);
  build.add(MeshRule::inbound_udp_answer);
  for (const PortRange& ports : config.capture_udp) build.add(MeshRule::inbound_udp_tproxy, {dport(ports)});
}

}  // namespace sidetrack
