// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/survey.h"

#include <algorithm>
#include <utility>

#include "rule/fold.h"
#include "rule/iptables.h"
#include "rule/ours.h"

namespace sidetrack {

const Unreadable* first_unreadable(const Survey& survey) {
  // nf_tables first: it needs the fewer capabilities, which are the ones to be named.
  for (BackendKind kind : {BackendKind::iptables_nft, BackendKind::nftables, BackendKind::iptables_legacy}) {
    const auto* unreadable = std::get_if<Unreadable>(&survey.of(kind));
    if (unreadable != nullptr && unreadable->may_hold_ours) return unreadable;
  }
  return nullptr;
}

std::vector<Live> effective_rulesets(Survey survey) {
  std::vector<Live> all;
  for (const BackendKind kind : all_backends) {
    ReadResult<Live>& result = survey.of(kind);
    if (auto* live = std::get_if<Live>(&result)) all.push_back(std::move(*live));
    auto* unreadable = std::get_if<Unreadable>(&result);
    if (unreadable != nullptr && !unreadable->chains.empty()) {
      Live unknown;
      unknown.backend = kind;
      unknown.chains = std::move(unreadable->chains);
      all.push_back(std::move(unknown));
    }
  }
  return all;
}

bool holds_ours(const Live& live) {
  // An empty table of iptables may be any program's; one of nftables has our name.
  const bool our_table = traits(live.backend).in_own_table && !live.own_tables.empty();
  return our_table || std::ranges::any_of(live.chains, [](const LiveChain& chain) { return concerns_us(chain); });
}

Ruleset canonical(BackendKind kind, const Ruleset& asked) {
  return traits(kind).in_own_table ? fold(asked) : in_iptables_order(asked);
}

}  // namespace sidetrack
