// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "space/regions.h"

namespace sidetrack::space {

// Returns the rule of the step as it stands in its chain, with its number: the one that this packet meets, where
// several were joined (see space/join.h). The step decides about the packet, and is of that side.
[[nodiscard]] LiveRule deciding_rule(Regions& regions, std::size_t side, const Step& step, const Point& point);

}  // namespace sidetrack::space
