// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <vector>

#include "model/address.h"
#include "rule/packet_at_hook.h"

namespace sidetrack {

// Whether the packet's address at this end is within one of the ranges, all of one family, or, negated, in none.
[[nodiscard]] Truth is_within(const PacketAtHook& packet, End end, const std::vector<AddressRange>& ranges,
                              bool negated);
// "its destination is 10.0.0.1"
[[nodiscard]] std::string address_words(const PacketAtHook& packet, End end);

}  // namespace sidetrack
