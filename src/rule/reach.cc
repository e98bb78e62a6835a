// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/reach.h"

namespace sidetrack {

Reach::Reach(const Ruleset& ruleset) {
  std::vector<const Rule*> jumps;
  for (const Rule& rule : ruleset.rules) {
    if (is_builtin(rule.chain)) of_builtin_ = of_builtin_ | rule.families;
    if (std::holds_alternative<Jump>(rule.target)) jumps.push_back(&rule);
  }
  if (of_builtin_.empty()) of_builtin_ = Families::both();

  // Each round follows the jumps one chain deeper; the kernel allows no circles.
  for (bool grew = true; grew;) {
    grew = false;
    for (const Rule* rule : jumps) {
      const std::pair from{rule->table, rule->chain};
      const auto found = reached_.find(from);
      const Families arriving = is_builtin(rule->chain)   ? Families::both()
                                : found != reached_.end() ? found->second
                                                          : Families();
      Families& to = reached_[{rule->table, std::get<Jump>(rule->target).chain}];
      const Families more = to | (arriving & rule->families);
      grew = grew || more != to;
      to = more;
    }
  }
}

Families Reach::operator()(Table table, const std::string& chain) const {
  if (is_builtin(chain)) return Families::both();
  const auto found = reached_.find({table, chain});
  return found == reached_.end() || found->second.empty() ? of_builtin_ : found->second;
}

void narrow_to_reach(Ruleset& ruleset) {
  const Reach reach(ruleset);
  for (Rule& rule : ruleset.rules) {
    const Families both = rule.families & reach(rule.table, rule.chain);
    if (!both.empty()) rule.families = both;
  }
}

}  // namespace sidetrack
