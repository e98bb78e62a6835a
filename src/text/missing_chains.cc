// SPDX-License-Identifier: GPL-2.0-or-later
#include "text/missing_chains.h"

#include "model/printable.h"
#include "rule/iptables.h"

namespace sidetrack {

std::set<std::string> forget_missing_chains(std::span<LiveChain> chains) {
  const auto place = [](const LiveChain& in, const std::string& chain) {
    return in.table_name + ' ' + std::string(name(in.table)) + ' ' + chain;
  };
  std::set<std::string> present;
  for (const LiveChain& chain : chains) present.insert(place(chain, chain.name));
  std::set<std::string> missing;
  for (LiveChain& chain : chains) {
    for (LiveRule& live : chain.rules) {
      const auto* jump = std::get_if<Jump>(&live.rule.target);
      if (jump == nullptr || present.contains(place(chain, jump->chain))) continue;
      missing.insert(printable(jump->chain));
      live.rule.target = UnknownTarget{iptables_words(live.rule.target)};
    }
  }
  return missing;
}

}  // namespace sidetrack
