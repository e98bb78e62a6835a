// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/known_sets.h"

namespace sidetrack {

void name_sets(std::vector<LiveChain>& chains, const KnownSets& sets) {
  if (sets.empty()) return;
  for (LiveChain& chain : chains) {
    for (LiveRule& live : chain.rules) {
      for (Match& match : live.rule.matches) {
        auto* set = std::get_if<SetMatch>(&match);
        const auto found = set != nullptr ? sets.find(set->index) : sets.end();
        if (found == sets.end()) continue;
        set->name = found->second.name;
        set->members = found->second.members;
      }
    }
  }
}

}  // namespace sidetrack
