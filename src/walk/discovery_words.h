// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <string_view>

#include "rule/packet_at_hook.h"

namespace sidetrack {

// Whether a match in these words of iptables or nft holds for a packet of neighbour discovery of that type, whose code
// is 0 and whose hop limit is 255 (RFC 4861, 4.3 and 4.4). Unknown if they ask for anything else.
[[nodiscard]] Truth truth_of_discovery(std::string_view words, std::uint8_t type);

}  // namespace sidetrack
