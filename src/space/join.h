// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <vector>

#include "rule/live.h"

namespace sidetrack::space {

// The same decisions in fewer rules: of rules one after the other that end alike and differ in one list of values
// (addresses, destination ports, ids), and are there for the same reason, one over all values. A packet is then asked
// once about ten thousand ranges.
[[nodiscard]] std::vector<Live> joined(std::vector<Live> live);

}  // namespace sidetrack::space
