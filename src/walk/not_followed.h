// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>

#include "walk/explain.h"

namespace sidetrack {

class Observer;

// What is known without following the packet: of broadcast and multicast, and where no source address can be had.
// `asked`: the packet with all filled in.
[[nodiscard]] std::optional<Outcome> without_walk(const Packet& packet, const Packet& asked, const PodView& pod,
                                                  Observer* observer);

}  // namespace sidetrack
