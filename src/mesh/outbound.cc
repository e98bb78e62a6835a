// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>

#include "mesh/builder.h"

namespace sidetrack {

using namespace words;

// -A OUTPUT -j ISTIO_OUTPUT, every protocol: the owner and DNS rules look at udp too
void output_jump(Builder& build) { build.add(MeshRule::outbound_jump); }

void outbound_excluded_ports(Builder& build) {
  for (const PortRange& ports : build.config.outbound_exclude_ports) {
    for (const ProtocolMatch& protocol : {tcp, udp}) {
      build.add(MeshRule::outbound_excluded_port, {protocol, dport(ports)});
    }
  }
}

void passthrough_return(Builder& build) {
  for (Family family : build.facts.families.list()) {
    build.add(MeshRule::outbound_passthrough, {source(AddressRange::single(Address::passthrough(family)))});
  }
}

namespace {

void owned_by_proxy(Builder& build, OwnerKind kind, std::uint32_t id) {
  const Config& config = build.config;
  // The uid's rule leaves DNS alone when it is captured; the gid's does not (the reference's choice).
  const bool leaves_dns = kind == OwnerKind::uid && build.captures_dns();
  const PortMatch besides = leaves_dns ? dports(dns_port, config.tunnel_port) : dport(config.tunnel_port);
  for (Family family : build.facts.families.list()) {
    build.add(MeshRule::proxy_to_itself, {destination(build.loopback(family)), besides, owner(kind, id)});
  }

  // A loopback range that was asked for by -i must not be returned here. The range's own address decides, as upstream.
  const auto loopback_range = [](const AddressRange& range) { return range.first.is_loopback(); };
  if (std::ranges::none_of(config.outbound_ranges.list, loopback_range)) {
    std::vector<Match> app{owner(kind, id)};
    if (build.captures_dns()) app.emplace_back(dport(dns_port));
    build.add(MeshRule::app_to_itself, app);
  }

  build.add(MeshRule::proxy_return, {owner(kind, id)});
}

}  // namespace

void proxy_owned(Builder& build) {
  for (std::uint32_t uid : build.config.proxy_uids) owned_by_proxy(build, OwnerKind::uid, uid);
  for (std::uint32_t gid : build.config.proxy_gids) owned_by_proxy(build, OwnerKind::gid, gid);
}

void owner_groups(Builder& build) {
  const Config& config = build.config;
  if (config.owner_groups.all) {
    for (std::uint32_t gid : config.owner_groups_exclude) {
      build.add(MeshRule::group_return, {owner(OwnerKind::gid, gid)});
    }
    return;
  }
  std::vector<Match> none_of_them;
  for (std::uint32_t gid : config.owner_groups.list) none_of_them.emplace_back(except(owner(OwnerKind::gid, gid)));
  build.add(MeshRule::only_groups, none_of_them);
}

// After the proxy's own rules: a range of uids may have the proxy's in it.
void outbound_excluded_owners(Builder& build) {
  const Config& config = build.config;
  const auto bypass = [&](OwnerKind kind, const std::vector<IdRange>& all) {
    for (const IdRange& ids : all) {
      for (const ProtocolMatch& protocol : {tcp, udp})
        build.add(MeshRule::outbound_excluded_owner, {protocol, owner(kind, ids)});
    }
  };
  bypass(OwnerKind::uid, config.exclude_uids);
  bypass(OwnerKind::gid, config.exclude_gids);
  for (const Cgroup& each : config.bypass_cgroups) build.add(MeshRule::outbound_bypassing_cgroup, {cgroup(each)});
  for (const UidPorts& each : config.exclude_uid_ports) {
    for (const PortRange& ports : each.ports) {
      for (const ProtocolMatch& protocol : {tcp, udp})
        build.add(MeshRule::outbound_excluded_owner_port, {protocol, dport(ports), owner(OwnerKind::uid, each.uids)});
    }
  }
}

void loopback_return(Builder& build) {
  for (Family family : build.facts.families.list()) {
    build.add(MeshRule::loopback_return, {destination(build.loopback(family))});
  }
}

void outbound_excluded_ranges(Builder& build) {
  for (const AddressRange& range : build.config.outbound_exclude_ranges) {
    build.add(MeshRule::outbound_excluded_range, {destination(range)});
  }
}

void outbound_included_ports(Builder& build) {
  for (const PortRange& ports : build.config.outbound_ports) {
    build.add(MeshRule::outbound_included_port, {dport(ports)});
  }
}

void outbound_included_ranges(Builder& build) {
  const Config& config = build.config;
  if (config.outbound_ranges.all) {
    build.add(MeshRule::outbound_included_range);
    for (const std::string& name : config.virtual_interfaces) {
      build.add(MeshRule::virtual_machine_outbound, {in(name)});
    }
    return;
  }
  for (const AddressRange& range : config.outbound_ranges.list) {
    for (const std::string& name : config.virtual_interfaces) {
      build.add(MeshRule::virtual_machine_outbound, {in(name), destination(range)});
    }
    build.add(MeshRule::outbound_included_range, {destination(range)});
  }
}

}  // namespace sidetrack
