// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <map>
#include <string>
#include <utility>

#include "rule/ruleset.h"

namespace sidetrack {

// Which families' packets come into each chain: all into a built-in one, into the others those that a jump brings
// there. Where one chain serves both families, as in an inet table of nf_tables, this says which rules have to ask for
// a family.
class Reach {
 public:
  explicit Reach(const Ruleset& ruleset);

  // Of a chain that nothing jumps to: the families of all rules in built-in chains.
  [[nodiscard]] Families operator()(Table table, const std::string& chain) const;

 private:
  std::map<std::pair<Table, std::string>, Families> reached_;
  Families of_builtin_;
};

// Takes from every rule the families whose packets never come to it. A rule that no packet comes to stays as it is.
void narrow_to_reach(Ruleset& ruleset);

}  // namespace sidetrack
