// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "model/packet.h"
#include "space/regions.h"

namespace sidetrack::space {

// Packets that are captured on the first side (redirected, or taken by TPROXY), and end otherwise on the second: one of
// each kind. Nothing: more than `most` packets would have to be followed to know.
[[nodiscard]] std::optional<std::vector<Packet>> captured_otherwise(Side planned, Side there, Scope scope,
                                                                    std::size_t most);

}  // namespace sidetrack::space
