// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "rule/live.h"

namespace sidetrack::space {

// Holds what the rules that one stands for have at the place of its list, in their order.
struct JoinedRule {
  std::size_t place = 0;
  std::vector<Match> each;
};
using JoinedRules = std::unordered_map<const LiveRule*, JoinedRule>;

// The same decisions in fewer rules: of rules one after the other that end alike and differ in one list of values
// (addresses, destination ports, ids), and are there for the same reason, one over all values. A packet is then asked
// once about ten thousand ranges.
[[nodiscard]] std::vector<Live> joined(std::vector<Live> live, JoinedRules& rules);

}  // namespace sidetrack::space
