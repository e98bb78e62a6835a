// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>

#include "model/packet.h"
#include "space/regions.h"

namespace sidetrack::space {

// A packet of the region's box as explain() is asked about it: it says the same of it. Nothing: it says something else.
[[nodiscard]] std::optional<Packet> witness(const Regions& regions, std::size_t side, const Box& box,
                                            const Ending& ending);
[[nodiscard]] std::optional<Packet> witness(const Regions& regions, std::size_t side, const Point& point,
                                            const Ending& ending);

}  // namespace sidetrack::space
