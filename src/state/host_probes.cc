// SPDX-License-Identifier: GPL-2.0-or-later
#include "state/host_probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "mesh/catalogue.h"
#include "state/choice.h"
#include "state/decide.h"

namespace sidetrack {
namespace {

constexpr std::size_t most_pods = 65536;  // of one family: what a set of ip_set holds, too

// Neighbours are one range in a set of nf_tables. `before`: how many there were before this set.
void add_each(const AddressRange& range, std::size_t before, std::vector<Address>& to) {
  for (Address address = range.first;; increment(std::span(address.bytes).first(address.size()))) {
    if (to.size() - before >= most_pods)
      throw Error(ExitCode::failed,
                  fmt::format("the set of pods' addresses of {} holds more than {}", title(range.family()), most_pods),
                  "see 'nft list table inet sidetrack-host'; 'sidetrack host-probes clean' removes it");
    to.push_back(address);
    if (address == range.last) return;
  }
}

// What apply would not read again is refused.
void require_room(const std::vector<Address>& pods) {
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    const auto count = static_cast<std::size_t>(std::ranges::count(pods, family, &Address::family));
    if (count <= most_pods) continue;
    throw Error(ExitCode::usage,
                fmt::format("{} addresses of {} are requested for the set of pods in ambient mode, which holds at most "
                            "{}; nothing was changed",
                            count, title(family), most_pods),
                "they are those of --add and those that the set holds: leave some out, or remove some by --remove");
  }
}

// In order, each once.
void sort_once(std::vector<Address>& pods) {
  std::ranges::sort(pods);
  pods.erase(std::ranges::unique(pods).begin(), pods.end());
}

bool asks_sets_by_our_rules(const Survey& survey) {
  const auto asks = [](const LiveRule& rule) {
    return rule.ours && std::ranges::any_of(rule.rule.matches,
                                            [](const Match& match) { return std::holds_alternative<SetMatch>(match); });
  };
  return std::ranges::any_of(all_backends, [&](BackendKind kind) {
    const Live* live = survey.live(kind);
    return live != nullptr && std::ranges::any_of(live->chains, [&](const LiveChain& chain) {
             return std::ranges::any_of(chain.rules, asks);
           });
  });
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
          const std::size_t before = pods.size();
          for (const AddressRange& range : address->ranges) add_each(range, before, pods);
        }
      }
    }
  }
  sort_once(pods);
  return pods;
}

Asked host_probes(HostProbes asked, const std::vector<Address>& add, const std::vector<Address>& remove,
                  const ApplyOptions& options, const Survey& survey) {
  asked.pods = pods_in_ambient_mode(survey);
  asked.pods.insert(asked.pods.end(), add.begin(), add.end());
  const std::set<Address> gone(remove.begin(), remove.end());
  std::erase_if(asked.pods,
                [&](const Address& pod) { return gone.contains(pod) || !asked.families.contains(pod.family); });
  sort_once(asked.pods);
  require_room(asked.pods);
  Asked made{{}, options};
  made.options.backend = backend_of(options, survey);
  // In a set that is not understood there may be addresses that our rules ask.
  if (survey.other_set && (!traits(*made.options.backend).in_own_table || asks_sets_by_our_rules(survey)))
    throw *survey.other_set;
  made.plan = host_probes_plan(asked, *made.options.backend);
  // Behind another program's rule that decides first the jump is of no use: -I POSTROUTING 1, again.
  const auto in_the_way = [&](EqualRules equal) {
    return obstacles(made.plan, *made.options.backend, survey, equal).obstacles.size();
  };
  const std::size_t now = in_the_way(EqualRules::keep);
  if (now > 0 && in_the_way(EqualRules::rewrite) < now) made.options.force_apply = true;
  return made;
}

}  // namespace sidetrack
