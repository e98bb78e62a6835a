// SPDX-License-Identifier: GPL-2.0-or-later
#include "state/host_probes.h"

#include <fmt/format.h>

#include <algorithm>

#include "mesh/catalogue.h"
#include "state/choice.h"
#include "state/decide.h"

namespace sidetrack {
namespace {

constexpr std::size_t most_pods = 65536;  // what a set of ip_set holds, too

// Neighbours are one range in a set of nf_tables.
void add_each(const AddressRange& range, std::vector<Address>& to) {
  for (Address address = range.first;; increment(std::span(address.bytes).first(address.size()))) {
    if (to.size() >= most_pods)
      throw Error(ExitCode::failed, fmt::format("the set of pods' addresses holds more than {}", most_pods),
                  "see 'nft list table inet sidetrack-host'");
    to.push_back(address);
    if (address == range.last) return;
  }
}

BackendKind backend_of(const ApplyOptions& options, const Survey& survey) {
  if (const auto named = named_backend(options)) return *named;
  for (const BackendKind kind : all_backends) {
    const Live* live = survey.live(kind);
    if (live != nullptr && holds_ours(*live)) return kind;
  }
  if (survey.no_sets) return BackendKind::nftables;
  const auto* lacking = std::get_if<Absent>(&survey.of(BackendKind::iptables_nft));
  return survey.legacy_in_use || lacking != nullptr ? BackendKind::iptables_legacy : BackendKind::iptables_nft;
}

}  // namespace

std::vector<Address> pods_in_ambient_mode(const Survey& survey) {
  std::vector<Address> pods;
  for (const SetEntry& entry : survey.routing.set_entries) pods.push_back(entry.address);
  if (const Live* live = survey.live(BackendKind::nftables)) {
    for (const LiveChain& chain : live->chains) {
      for (const LiveRule& rule : chain.rules) {
        if (!rule.ours || !is_of(rule.rule, MeshRule::host_probe_source)) continue;
        for (const Match& match : rule.rule.matches) {
          const auto* address = std::get_if<AddressMatch>(&match);
          if (address == nullptr) continue;
          for (const AddressRange& range : address->ranges) add_each(range, pods);
        }
      }
    }
  }
  std::ranges::sort(pods);
  pods.erase(std::ranges::unique(pods).begin(), pods.end());
  return pods;
}

Asked host_probes(HostProbes asked, const std::vector<Address>& add, const std::vector<Address>& remove,
                  const ApplyOptions& options, const Survey& survey) {
  asked.pods = pods_in_ambient_mode(survey);
  asked.pods.insert(asked.pods.end(), add.begin(), add.end());
  std::erase_if(asked.pods, [&](const Address& pod) { return std::ranges::find(remove, pod) != remove.end(); });
  Asked made{{}, options};
  made.options.backend = backend_of(options, survey);
  made.plan = host_probes_plan(asked, *made.options.backend);
  // Behind another program's rule that decides first the jump is of no use: -I POSTROUTING 1, again.
  const auto in_the_way = [&](EqualRules equal) {
    return obstacles(made.plan, *made.options.backend, survey, equal).size();
  };
  const std::size_t now = in_the_way(EqualRules::keep);
  if (now > 0 && in_the_way(EqualRules::rewrite) < now) made.options.force_apply = true;
  return made;
}

}  // namespace sidetrack
