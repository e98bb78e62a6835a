// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "probe/endpoint.h"

namespace sidetrack::probe {

// The own address of the tcp socket in this network namespace whose peer is `client`: where a connection that `client`
// opens was going, as soon as its first packet is there, be it accepted or not. An IPv4 connection taken by an IPv6
// socket is found, too. Needs no right. Throws failed if the table cannot be read.
[[nodiscard]] std::optional<Endpoint> other_end(const Endpoint& client);

// The ports of all peers in the table, however long ago their connections have ended.
[[nodiscard]] std::set<std::uint16_t> peer_ports();

}  // namespace sidetrack::probe
