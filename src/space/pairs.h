// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "space/regions.h"

namespace sidetrack::space {

// Two diagrams of one universe laid over each other: by leaves, how packets end in both.
class Pairs {
 public:
  using Pair = std::pair<Leaf, Leaf>;
  static constexpr Leaf untold = no_such_packet + 1;  // packets that are not asked about

  // `told`: the pair that two leaves stand for; nothing: such packets are not asked about.
  Pairs(Regions& regions, Regions::Node first, Regions::Node second,
        const std::function<std::optional<Pair>(Leaf, Leaf)>& told);

  [[nodiscard]] Regions::Node root() const { return root_; }
  [[nodiscard]] const std::vector<Pair>& all() const { return all_; }
  [[nodiscard]] static bool is_told(Leaf leaf) { return leaf > untold; }
  [[nodiscard]] static std::size_t number(Leaf leaf) { return leaf - untold - 1; }  // in all()

 private:
  std::vector<Pair> all_;
  Regions::Node root_;
};

}  // namespace sidetrack::space
