// SPDX-License-Identifier: GPL-2.0-or-later
// Returns what the kernel's table local has for interfaces.
#pragma once

#include <span>
#include <vector>

#include "pod/pod_view.h"

namespace sidetrack {

// Returns their own addresses; in IPv4 a prefix on lo as a whole (fib_add_ifaddr), so all of 127.0.0.0/8, but for the
// routes of others to parts of that.
[[nodiscard]] std::vector<AddressRange> own_ranges(std::span<const Interface> interfaces, Family family);
// Returns the IPv4 routes of table main to parts of what is local: before that, they count where both tables are one.
[[nodiscard]] std::vector<const Route*> main_routes_within_local(const PodView& pod);
// Returns the last address of each IPv4 network of the interface, and the first one until kernel 5.14.
[[nodiscard]] std::vector<AddressRange> broadcast_ranges(const Interface& interface, bool first_is_broadcast);

}  // namespace sidetrack
