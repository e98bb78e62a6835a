// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>

#include "support/endpoint.h"
#include "support/namespace.h"

namespace sidetrack::netns {

enum TcpFlags : std::uint8_t { syn = 0x02, ack = 0x10 };  // RFC 9293

// Sends one TCP segment that belongs to no connection, by a raw socket, and says whether anything came back. No
// time-out decides: a SYN to the same port is sent after it, and its answer would come after an answer to the stray.
[[nodiscard]] bool is_answered(const Namespace& where, const Endpoint& from, const Endpoint& to, std::uint8_t flags);

}  // namespace sidetrack::netns
