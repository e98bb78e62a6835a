// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/match.h"
#include "walk/observer.h"

namespace sidetrack {

// Whether the match holds for the packet, and its observer hears of it.
[[nodiscard]] bool holds_observed(const Match& match, const PacketAtHook& packet);

}  // namespace sidetrack
