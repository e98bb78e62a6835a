// SPDX-License-Identifier: GPL-2.0-or-later
// Returns what the kernel's table local has for interfaces.
#pragma once

#include <span>
#include <vector>

#include "pod/interface.h"

namespace sidetrack {

// Returns their own addresses; in IPv4 a prefix on lo as a whole (fib_add_ifaddr), so all of 127.0.0.0/8, but for the
// routes of others to parts of that.
[[nodiscard]] std::vector<AddressRange> own_ranges(std::span<const Interface> interfaces, Family family);
// Returns the last address of each IPv4 network of the interface, and the first one until kernel 5.14.
[[nodiscard]] std::vector<AddressRange> broadcast_ranges(const Interface& interface, bool first_is_broadcast);

}  // namespace sidetrack
