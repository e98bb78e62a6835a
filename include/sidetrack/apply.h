// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "sidetrack/backend.h"
#include "sidetrack/plan.h"

namespace sidetrack {

enum class Applied : std::uint8_t { unchanged, changed };

// Makes the namespace hold the plan through this backend: routes and addresses first, since rules without them would
// lose traffic, then the rules, read back and compared; last, routes of ours that are no longer asked for go away.
// Equal rules are left alone, down to their counters, unless `force`. When it throws, the namespace holds what it held.
// Somebody else's change in between is met by reading again, a bounded number of times, then by busy.
Applied apply(const Plan& plan, Backend& backend, Routes& routes, bool force = false);

}  // namespace sidetrack
