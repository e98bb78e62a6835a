// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <vector>

#include "rule/rule.h"

namespace sidetrack {

// Holds whose traffic a mesh's chains leave alone: its proxy's ids, by which the mesh's rules in built-in chains are
// told from another program's of the same shape.
class ReturnedOwners {
 public:
  // Adds that of a rule of these chains: -m owner --uid-owner 1337 -j RETURN
  void add(const Rule& rule);
  // Returns whether the rule is about one of them, or about no owner. If none is known, nothing tells: it returns true.
  [[nodiscard]] bool cover(const Rule& rule) const;
  // Returns whether the rule is about one of them.
  [[nodiscard]] bool name(const Rule& rule) const;

 private:
  std::vector<std::vector<Match>> owners_;
  bool known_ = false;
};

}  // namespace sidetrack
