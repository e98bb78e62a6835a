// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "evaluate/observer.h"
#include "rule/match.h"

namespace sidetrack {

// Whether the match holds for the packet, and its observer hears of it.
[[nodiscard]] bool holds_observed(const Match& match, const PacketAtHook& packet);

}  // namespace sidetrack
