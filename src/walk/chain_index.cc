// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk/chain_index.h"

namespace sidetrack {

const LiveChain* ChainIndex::find(const LiveChain& from, std::string_view name) {
  if (chains_.empty()) {
    for (const LiveChain& chain : live_->chains) {
      if ((chain.families & families_) == families_) chains_.emplace(key(chain, chain.name), &chain);
    }
  }
  const auto found = chains_.find(key(from, name));
  return found != chains_.end() ? found->second : nullptr;
}

std::size_t ChainIndex::most_rules() {
  if (most_rules_ == 0) {
    most_rules_ = 10'000;
    for (const LiveChain& chain : live_->chains) most_rules_ += 4 * chain.rules.size();
  }
  return most_rules_;
}

}  // namespace sidetrack
