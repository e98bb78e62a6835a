// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>

#include "cli/commands.h"
#include "cli/log.h"

namespace sidetrack::cli {
namespace {

bool holds_rules(const Live& live) {
  return std::ranges::any_of(live.chains, [](const LiveChain& chain) {
    return chain.ours || !chain.rules.empty() || chain.policy != Verdict::accept;
  });
}

}  // namespace

std::vector<Live> read_live(const CommandLine& line) {
  Survey survey = open_kernel(line, false)->survey();
  // "No rules" would be a guess.
  if (const Unreadable* place = unseen(survey)) throw place->why;
  std::vector<Live> found;
  for (Sight<Live>* place : {&survey.nftables, &survey.iptables_nft, &survey.iptables_legacy}) {
    if (const auto* unreadable = std::get_if<Unreadable>(place)) {
      warn(std::string(unreadable->why.what()) + ": its tables, none of which can be the sidecar's, are not seen");
    }
    auto* live = std::get_if<Live>(place);
    if (live != nullptr && holds_rules(*live)) found.push_back(std::move(*live));
  }
  return found;
}

}  // namespace sidetrack::cli
