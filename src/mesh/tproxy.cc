// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/builder.h"

namespace sidetrack {
namespace {

using namespace words;

void mark_owned(Builder& build, OwnerKind kind, std::uint32_t id) {
  for (Family family : build.facts.families.list()) {
    build.add(MeshRule::tproxy_mark_proxy, {destination(build.loopback(family)), owner(kind, id)},
              {.target = SetMark{outbound_mark}});
  }
}

}  // namespace

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
