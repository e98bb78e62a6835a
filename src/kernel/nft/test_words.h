// SPDX-License-Identifier: GPL-2.0-or-later
// A comparison that the model has no match for, in nft's words.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "model/protocol.h"
#include "rule/nft/comparison.h"

namespace sidetrack::nft {

// "meta length 100-200", "ip ttl != 64", "ct status dnat", "@th,64,8 0x5". `protocol` is that of the packets that come
// here, if it is known.
[[nodiscard]] std::string test_words(const Value& value, std::span<const Bounds> bounds, bool negated,
                                     Families families, std::optional<Protocol> protocol);

// new,destroy: events of connections, as in `ct event set`
[[nodiscard]] std::string event_words(std::uint32_t events);

}  // namespace sidetrack::nft
