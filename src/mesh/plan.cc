// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "mesh/builder.h"
#include "model/error.h"
#include "pod/ztunnel.h"

namespace sidetrack {
namespace {

// ip rule add pref 32764 fwmark 0x111/0xfff lookup 100; ip route add local default dev lo table 100
Routing ambient_routing(const Builder& build) {
  Routing routing;
  for (Family family : build.facts.families.list()) {
    routing.policy_rules.push_back(fwmark_rule(family, ztunnel_connection_mark, ztunnel_route_table, ztunnel_mask));
    routing.policy_rules.back().priority = ztunnel_priority;
    routing.local_routes.push_back(local_default(family, ztunnel_route_table));
  }
  return routing;
}

Routing routing(const Builder& build) {
  Routing routing;
  const Config& config = build.config;
  if (build.facts.families.contains(Family::ipv6)) {
    routing.loopback_addresses.push_back(Address::passthrough(Family::ipv6));
  }
  if (build.tproxy() && !(config.inbound_ports.empty() && config.capture_udp.empty())) {
    for (Family family : build.facts.families.list()) {
      routing.policy_rules.push_back(fwmark_rule(family, config.tproxy_mark, config.tproxy_route_table));
      routing.local_routes.push_back(local_default(family, config.tproxy_route_table));
    }
  }
  return routing;
}

// Of an ambient pod: ztunnel tells by the port what came in from what goes out.
std::vector<std::string> shared_ports(const Config& config) {
  std::vector<std::pair<std::uint16_t, const char*>> ports{{config.proxy_port, "--envoy-port"}};
  if (!config.ingress) ports.emplace_back(config.inbound_port, "--inbound-capture-port");
  if (!config.ingress) ports.emplace_back(config.tunnel_port, "--inbound-tunnel-port");
  if (config.redirect_dns) ports.emplace_back(proxy_dns_port, "--redirect-dns");
  std::vector<std::string> found;
  for (auto one = ports.begin(); one != ports.end(); ++one) {
    for (auto other = ports.begin(); other != one; ++other) {
      if (one->first != other->first) continue;
      found.push_back(std::string(other->second) + " and " + one->second + " lead to one port, " +
                      std::to_string(one->first) + ": ztunnel cannot tell what comes for which");
    }
  }
  return found;
}

// What is said of ranges of IPv6 where rules are built for it; empty: nothing.
std::string unmet(const std::vector<AddressRange>& ranges) {
  const auto mapped = [](const AddressRange& range) { return range.first.unmapped() && range.last.unmapped(); };
  const auto range = std::ranges::find_if(ranges, mapped);
  if (range == ranges.end()) return "";
  const AddressRange ipv4{*range->first.unmapped(), *range->last.unmapped()};
  return "no packet has an address of " + range->text() + ", by which sockets of IPv6 name IPv4: write " + ipv4.text();
}

// Where none are.
std::string unused(const std::vector<AddressRange>& ranges) {
  const auto count = std::ranges::count(ranges, Family::ipv6, &AddressRange::family);
  if (count == 0) return "";
  return std::to_string(count) + " IPv6 range(s) not used: no rules are built for IPv6 here (see --dual-stack)";
}

// What the reference's rules do with these options that the person who gave them will not expect.
std::vector<std::string> config_warnings(const Builder& build) {
  std::vector<std::string> found;
  const Config& config = build.config;
  const auto several = [&](const std::vector<std::uint32_t>& ids, const char* flag, const char* what) {
    if (ids.size() < 2) return;
    found.push_back(std::string(flag) + " has several values: traffic over lo of all but " + what + " " +
                    std::to_string(ids.front()) +
                    " is returned by the first one's rule before the others are evaluated");
  };
  several(config.proxy_uids, "--proxy-uid", "uid");
  several(config.proxy_gids, "--proxy-gid", "gid");
  if (config.proxy_uids != config.proxy_gids) {
    found.emplace_back(
        "--proxy-uid and --proxy-gid differ: the uid's rules for lo decide before the gid's are evaluated");
  }
  if (config.capture_all_dns && !config.redirect_dns) {
    found.emplace_back("--capture-all-dns has no effect without --redirect-dns");
  }
  if (config.track_forwarded_dns && (!config.redirect_dns || config.virtual_interfaces.empty())) {
    found.emplace_back("--track-forwarded-dns has no effect without --redirect-dns and --kube-virt-interfaces");
  }
  if (!config.owner_groups.all && !config.owner_groups_exclude.empty()) {
    found.emplace_back(
        "ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE has no effect: ISTIO_OUTBOUND_OWNER_GROUPS lists the groups");
  }
  if (!config.inbound_ports.all && !config.inbound_exclude_ports.empty() &&
      !are_excluded_unasked(config.inbound_exclude_ports)) {
    found.emplace_back("--istio-local-exclude-ports has no effect: it is for --istio-inbound-ports '*'");
  }
  if (!config.outbound_ranges.empty()) {
    for (const AddressRange& range : merged(config.outbound_exclude_ranges)) {
      if (range.prefix_length() == 0)
        found.push_back(fmt::format("--istio-service-exclude-cidr {0} excludes all of {1}: no outbound {1} is captured",
                                    range.text(), title(range.family())));
    }
  }
  std::vector<std::string> by_source;
  if (!config.inbound_ranges.list.empty()) by_source.emplace_back("--include-inbound-ranges");
  if (!config.inbound_exclude_ranges.empty()) by_source.emplace_back("--exclude-inbound-ranges");
  if (config.inbound_ports.empty()) {
    for (const std::string& flag : by_source) found.push_back(flag + " has no effect: it is for --istio-inbound-ports");
  } else if (!config.inbound_ranges.list.empty()) {
    for (const Family family : build.facts.families.list()) {
      if (std::ranges::find(config.inbound_ranges.list, family, &AddressRange::family) ==
          config.inbound_ranges.list.end())
        found.push_back("--include-inbound-ranges has no range of " + std::string(title(family)) +
                        ": no inbound TCP is captured there");
    }
  }
  if (!config.inbound_ports.empty() && !config.capture_udp.empty()) {
    for (const std::string& flag : by_source)
      found.push_back(flag + " is for TCP: UDP to the ports of --capture-udp goes to the proxy from every source");
  }
  const std::pair<const std::vector<AddressRange>&, const char*> lists[] = {
      {config.outbound_ranges.list, "--istio-service-cidr"},
      {config.outbound_exclude_ranges, "--istio-service-exclude-cidr"},
      {config.inbound_ranges.list, "--include-inbound-ranges"},
      {config.inbound_exclude_ranges, "--exclude-inbound-ranges"}};
  const bool has_ipv6 = build.facts.families.contains(Family::ipv6);
  for (const auto& [ranges, flag] : lists) {
    const std::string words = has_ipv6 ? unmet(ranges) : unused(ranges);
    if (!words.empty()) found.push_back(flag + (": " + words));
  }
  return found;
}

}  // namespace

bool are_excluded_unasked(const std::vector<PortRange>& ports) {
  const auto has = [&](std::uint16_t port) { return std::ranges::find(ports, PortRange(port)) != ports.end(); };
  constexpr std::size_t most = 3;  // the status port may be another one
  return (ports.size() <= most && has(15021) && has(15090)) || std::ranges::all_of(ports, [](const PortRange& range) {
           return std::ranges::any_of(ports_of_proxy, [&](std::uint16_t port) { return range == PortRange(port); });
         });
}

Plan plan(const Config& config, const HostFacts& facts) {
  Plan plan;
  plan.families = facts.families;
  plan.dns_servers = facts.dns_servers;
  plan.warnings = facts.warnings;
  if (config.mode == Mode::none) return plan;

  Builder build(config, facts);
  if (config.dataplane == Dataplane::ambient) {
    ambient(build);
    plan.routing = ambient_routing(build);
    std::ranges::move(shared_ports(config), std::back_inserter(plan.warnings));
    plan.ruleset = std::move(build.ruleset);
    return plan;
  }
  excluded_interfaces(build);
  virtual_interfaces(build);
  drop_invalid(build);
  redirect_chains(build);
  inbound(build);
  output_jump(build);
  outbound_excluded_ports(build);
  passthrough_return(build);
  proxy_owned(build);
  owner_groups(build);
  outbound_excluded_owners(build);
  dns(build);
  loopback_return(build);
  outbound_excluded_ranges(build);
  outbound_included_ports(build);
  outbound_included_ranges(build);
  tproxy_marks(build);
  inbound_udp(build);

  plan.routing = routing(build);
  std::ranges::move(config_warnings(build), std::back_inserter(plan.warnings));
  plan.ruleset = std::move(build.ruleset);
  return plan;
}

void Builder::add(MeshRule id, const std::vector<Match>& values, const RowOverrides& overrides) {
  Rule rule = instantiate(id, values, overrides);
  rule.families = rule.families & facts.families;
  if (rule.families.empty()) return;
  if (ruleset.rules.size() == config.most_rules) {
    throw Error(ExitCode::usage,
                fmt::format("more than {} rules are asked for: expected fewer ranges, ports, interfaces or users",
                            config.most_rules),
                "each outbound range is a rule for each virtual interface, too; wider ranges are fewer");
  }
  ruleset.rules.push_back(std::move(rule));
}

AddressRange Builder::loopback(Family family) const {
  return family == Family::ipv4 ? config.loopback_ipv4 : AddressRange::single(Address::loopback(family));
}

Families Builder::dns_families() const {
  if (config.capture_all_dns) return facts.families;
  Families families;
  for (const Address& server : facts.dns_servers) families = families | server.family;
  return families & facts.families;
}

}  // namespace sidetrack
