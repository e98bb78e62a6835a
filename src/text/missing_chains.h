// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <set>
#include <span>
#include <string>

#include "rule/live.h"

namespace sidetrack {

// A jump to a chain that the text does not have leads nowhere that is known: makes it a target that is not understood.
// Returns the names of those chains, printable.
std::set<std::string> forget_missing_chains(std::span<LiveChain> chains);

}  // namespace sidetrack
