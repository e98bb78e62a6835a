// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdlib>

namespace sidetrack {

// How much a test does, or a seed: the number in that environment variable, else the usual one, which is little enough
// for every run. `scripts/test long` sets them.
inline unsigned amount(const char* variable, unsigned usual) {
  const char* given = std::getenv(variable);
  return given == nullptr ? usual : static_cast<unsigned>(std::strtoul(given, nullptr, 10));
}

// How many system calls a test of faults goes on from one that it disturbs to the next.
inline int fault_stride() { return static_cast<int>(amount("SIDETRACK_CRASH_STRIDE", 5)); }

}  // namespace sidetrack
