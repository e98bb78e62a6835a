// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <vector>

#include "model/address.h"
#include "rule/packet_at_hook.h"

namespace sidetrack {

// Whether the packet's address at this end is within one of the ranges, all of one family, or, negated, in none.
[[nodiscard]] Truth is_within(const PacketAtHook& packet, End end, const std::vector<AddressRange>& ranges,
                              bool negated);
// Whether a port is one of these; without one, it is known to be one of `chosen`.
[[nodiscard]] Truth has_one_of(const std::optional<std::uint16_t>& port, const std::vector<PortRange>& ports,
                               const PortRange& chosen);
// "its destination is 10.0.0.1"
[[nodiscard]] std::string address_words(const PacketAtHook& packet, End end);

}  // namespace sidetrack
