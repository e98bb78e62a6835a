// SPDX-License-Identifier: GPL-2.0-or-later
// Returns what the kernel's table local has for an interface.
#pragma once

#include <vector>

#include "pod/interface.h"

namespace sidetrack {

// Its own addresses; in IPv4 a prefix on lo as a whole (fib_add_ifaddr), so all of 127.0.0.0/8, but for the routes of
// others to parts of that.
[[nodiscard]] std::vector<AddressRange> own_ranges(const Interface& interface, Family family);
// The last address of each of its networks of IPv4, and the first one until kernel 5.14.
[[nodiscard]] std::vector<AddressRange> broadcast_ranges(const Interface& interface, bool first_is_broadcast);

}  // namespace sidetrack
