// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/known_sets.h"

#include <algorithm>

#include "model/error.h"

namespace sidetrack {
namespace {

template <typename Use>
void each_set(Rule& rule, const Use& use) {
  for (Match& match : rule.matches) {
    if (auto* set = std::get_if<SetMatch>(&match)) use(*set);
  }
}

}  // namespace

void name_sets(std::vector<LiveChain>& chains, const KnownSets& sets) {
  if (sets.empty()) return;
  for (LiveChain& chain : chains) {
    for (LiveRule& live : chain.rules) {
      each_set(live.rule, [&](SetMatch& match) {
        const auto found = sets.find(match.index);
        if (found == sets.end()) return;
        match.name = found->second.name;
        match.members = found->second.members;
      });
    }
  }
}

}  // namespace sidetrack
