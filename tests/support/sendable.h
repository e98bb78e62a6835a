// SPDX-License-Identifier: GPL-2.0-or-later
// Regions of packets that sockets can send, and what the sockets would see.
#pragma once

#include <vector>

#include "space/regions.h"
#include "support/packets.h"

namespace sidetrack::netns {

// What a socket of the pod, of the outside or of the guest can send, and somebody answers or refuses. With a mark: what
// one of the pod can send that has it.
[[nodiscard]] std::vector<space::Box> sendable(space::Regions& regions, std::uint32_t mark = 0);

// A point of a region: at its edge, or anywhere.
[[nodiscard]] space::Point point_of(const space::Box& box, space::Regions& regions, Dice& dice, bool edge);

[[nodiscard]] Probe probe_of(const Packet& packet);

// What explain would say of a packet of a region that ends so.
[[nodiscard]] Outcome outcome_of(const space::Ending& ending, const Packet& packet);

}  // namespace sidetrack::netns
