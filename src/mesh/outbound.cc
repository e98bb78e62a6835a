// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>

#include "mesh/builder.h"

namespace sidetrack {

using namespace words;

// 6. -A OUTPUT -j ISTIO_OUTPUT, every protocol: the owner and DNS rules look at udp too
void output_jump(Builder& build) {
  build.append(Table::nat, output, {}, Jump{istio_output}, {"", "outbound traffic is looked at"});
}

// 7.
void outbound_excluded_ports(Builder& build) {
  for (std::uint16_t port : build.config.outbound_exclude_ports) {
    const std::string number = std::to_string(port);
    for (const ProtocolMatch& protocol : {tcp, udp}) {
      build.append(Table::nat, istio_output, {protocol, dport(port)}, Verdict::return_,
                   {"-o " + number, "outbound to port " + number + " bypasses the proxy"});
    }
  }
}

// 8.
void passthrough_return(Builder& build) {
  for (Family family : build.facts.families.list()) {
    const Address address = Address::passthrough(family);
    build.append(family, Table::nat, istio_output, {out("lo"), source(AddressRange::single(address))}, Verdict::return_,
                 {"", "the proxy passes inbound traffic on to the app from " + address.text()});
  }
}

namespace {

// 9 for one uid, 10 for one gid
void owned_by_proxy(Builder& build, OwnerKind kind, std::uint32_t id) {
  const Config& config = build.config;
  const bool uid = kind == OwnerKind::uid;
  const std::string number = std::to_string(id);
  const std::string flag = (uid ? "-u " : "-g ") + number;
  const std::string who = (uid ? "uid " : "gid ") + number;
  const std::uint16_t tunnel = config.tunnel_port;

  // The uid's rule leaves DNS alone when it is captured; the gid's does not (the reference's choice).
  const PortMatch besides = uid && build.captures_dns() ? dports(53, tunnel) : dport(tunnel);
  for (Family family : build.facts.families.list()) {
    build.append(family, Table::nat, istio_output,
                 {out("lo"), except(destination(build.loopback(family))), tcp, except(besides), owner(kind, id)},
                 Jump{istio_in_redirect},
                 {flag, "the proxy (" + who + ") calling this pod's own address: inbound through the proxy"});
  }

  // A loopback range that was asked for by -i must not be returned here. The range's own address decides, as upstream.
  const auto loopback_range = [](const AddressRange& range) { return range.first.is_loopback(); };
  if (std::ranges::none_of(config.outbound_ranges.list, loopback_range)) {
    std::vector<Match> matches{out("lo")};
    if (build.captures_dns()) {
      matches.emplace_back(tcp);
      matches.emplace_back(except(dport(53)));
    }
    matches.emplace_back(except(owner(kind, id)));
    build.append(Table::nat, istio_output, matches, Verdict::return_,
                 {flag, "the app talking to itself (not " + who + ") bypasses the proxy"});
  }

  build.append(Table::nat, istio_output, {owner(kind, id)}, Verdict::return_,
               {flag, "the proxy's own traffic (" + who + ") goes out as it is"});
}

}  // namespace

void proxy_owned(Builder& build) {
  for (std::uint32_t uid : build.config.proxy_uids) owned_by_proxy(build, OwnerKind::uid, uid);
  for (std::uint32_t gid : build.config.proxy_gids) owned_by_proxy(build, OwnerKind::gid, gid);
}

// 11.
void owner_groups(Builder& build) {
  const Config& config = build.config;
  if (config.owner_groups.all) {
    for (std::uint32_t gid : config.owner_groups_exclude) {
      build.append(Table::nat, istio_output, {owner(OwnerKind::gid, gid)}, Verdict::return_,
                   {"ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE=" + std::to_string(gid),
                    "outbound of group " + std::to_string(gid) + " bypasses the proxy"});
    }
    return;
  }
  std::vector<Match> none_of_them;
  std::string names;
  for (std::uint32_t gid : config.owner_groups.list) {
    none_of_them.emplace_back(except(owner(OwnerKind::gid, gid)));
    if (!names.empty()) names += ',';
    names += std::to_string(gid);
  }
  build.append(Table::nat, istio_output, none_of_them, Verdict::return_,
               {"ISTIO_OUTBOUND_OWNER_GROUPS=" + names,
                names.empty() ? "no group's outbound goes to the proxy" : "only groups " + names + " go to the proxy"});
}

// 13.
void loopback_return(Builder& build) {
  for (Family family : build.facts.families.list()) {
    build.append(family, Table::nat, istio_output, {destination(build.loopback(family))}, Verdict::return_,
                 {"", "loopback is never captured"});
  }
}

// 14.
void outbound_excluded_ranges(Builder& build) {
  for (const AddressRange& range : build.config.outbound_exclude_ranges) {
    build.append(range.family(), Table::nat, istio_output, {destination(range)}, Verdict::return_,
                 {"-x " + range.text(), "outbound to " + range.text() + " bypasses the proxy"});
  }
}

// 15.
void outbound_included_ports(Builder& build) {
  for (std::uint16_t port : build.config.outbound_ports) {
    const std::string number = std::to_string(port);
    build.append(Table::nat, istio_output, {tcp, dport(port)}, Jump{istio_redirect},
                 {"-q " + number, "outbound to port " + number + " goes to the proxy"});
  }
}

// 16.
void outbound_included_ranges(Builder& build) {
  const Config& config = build.config;
  if (config.outbound_ranges.all) {
    build.append(Table::nat, istio_output, {}, Jump{istio_redirect},
                 {"-i *", "all other outbound TCP goes to the proxy"});
    for (const std::string& name : config.virtual_interfaces) {
      build.insert(build.facts.families, Table::nat, prerouting, 1, {in(name)}, Jump{istio_redirect},
                   {"-k " + name, "what the virtual machine behind " + name + " sends is outbound traffic"});
    }
    return;
  }
  for (const AddressRange& range : config.outbound_ranges.list) {
    const std::string text = range.text();
    for (const std::string& name : config.virtual_interfaces) {
      build.insert(
          range.family(), Table::nat, prerouting, 1, {in(name), destination(range)}, Jump{istio_redirect},
          {"-k " + name, "what the virtual machine behind " + name + " sends to " + text + " is outbound traffic"});
    }
    build.append(range.family(), Table::nat, istio_output, {destination(range)}, Jump{istio_redirect},
                 {"-i " + text, "outbound TCP to " + text + " goes to the proxy"});
  }
}

}  // namespace sidetrack
