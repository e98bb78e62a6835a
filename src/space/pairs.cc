// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/pairs.h"

namespace sidetrack::space {

Pairs::Pairs(Regions& regions, Regions::Node first, Regions::Node second,
             const std::function<std::optional<Pair>(Leaf, Leaf)>& told) {
  std::map<Pair, Leaf> leaves;
  root_ = regions.diagrams().combined(first, second, [&](Leaf a, Leaf b) {
    if (a == no_such_packet && b == no_such_packet) return no_such_packet;
    const std::optional<Pair> pair = told(a, b);
    if (!pair) return untold;
    const auto [found, added] = leaves.try_emplace(*pair, static_cast<Leaf>(untold + 1 + all_.size()));
    if (added) all_.push_back(*pair);
    return found->second;
  });
}

}  // namespace sidetrack::space
