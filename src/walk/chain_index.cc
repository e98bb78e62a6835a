// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk/chain_index.h"

namespace sidetrack {

std::size_t most_rules_walked(const Live& live) {
  std::size_t most = 10'000;
  for (const LiveChain& chain : live.chains) most += 4 * chain.rules.size();
  return most;
}

const LiveChain* ChainIndex::find(const LiveChain& from, std::string_view name) {
  if (chains_.empty()) {
    for (const LiveChain& chain : live_->chains) {
      if ((chain.families & families_) == families_) chains_.emplace(key(chain, chain.name), &chain);
    }
  }
  const auto found = chains_.find(key(from, name));
  return found != chains_.end() ? found->second : nullptr;
}

}  // namespace sidetrack
