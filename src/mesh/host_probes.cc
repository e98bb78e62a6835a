// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/host_probes.h"

#include <algorithm>

#include "mesh/catalogue.h"

namespace sidetrack {
namespace {

std::vector<Address> pods_of(const HostProbes& asked, Family family) {
  std::vector<Address> pods;
  std::ranges::copy_if(asked.pods, std::back_inserter(pods), [&](const Address& pod) { return pod.family == family; });
  std::ranges::sort(pods);
  pods.erase(std::ranges::unique(pods).begin(), pods.end());
  return pods;
}

std::vector<AddressRange> each_alone(const std::vector<Address>& addresses) {
  std::vector<AddressRange> ranges;
  std::ranges::transform(addresses, std::back_inserter(ranges), AddressRange::single);
  return ranges;
}

}  // namespace

Plan host_probes_plan(const HostProbes& asked, BackendKind backend) {
  Plan plan;
  plan.families = asked.families;
  const bool own_sets = traits(backend).in_own_table;
  Rule jump = instantiate(MeshRule::host_probe_jump, {});
  jump.families = asked.families;
  plan.ruleset.rules.push_back(std::move(jump));
  for (const Family family : asked.families.list()) {
    const std::vector<Address> pods = pods_of(asked, family);
    const std::vector<AddressRange> ranges = each_alone(pods);
    const Instead to{.target = source_nat(family == Family::ipv4 ? asked.probe_address : asked.probe_address6)};
    if (!own_sets) {
      const std::string set = probe_set(family);
      plan.routing.sets.push_back({set, family});
      for (const Address& pod : pods) plan.routing.set_entries.push_back({set, pod});
      plan.ruleset.rules.push_back(
          instantiate(MeshRule::host_probe_source, {SetMatch{End::destination, set, unknown_set, {}, false}}, to));
      std::get<SetMatch>(plan.ruleset.rules.back().matches.back()).members = ranges;
    } else if (!pods.empty()) {
      plan.ruleset.rules.push_back(
          instantiate(MeshRule::host_probe_source, {AddressMatch{End::destination, ranges, false}}, to));
    }
  }
  return plan;
}

std::vector<Address> pods_of(const Plan& plan) {
  std::vector<Address> pods;
  for (const SetEntry& entry : plan.routing.set_entries) pods.push_back(entry.address);
  for (const Rule& rule : plan.ruleset.rules) {
    for (const Match& match : rule.matches) {
      const auto* address = std::get_if<AddressMatch>(&match);
      if (address == nullptr) continue;
      for (const AddressRange& range : address->ranges) pods.push_back(range.first);
    }
  }
  std::ranges::sort(pods);
  return pods;
}

}  // namespace sidetrack
