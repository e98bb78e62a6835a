// SPDX-License-Identifier: GPL-2.0-or-later
// Returns what the kernel's table local has for interfaces.
#pragma once

#include <span>
#include <vector>

#include "pod/pod_view.h"

namespace sidetrack {

// Returns their own addresses. Of lo, IPv4 takes whole prefixes (fib_add_ifaddr), such as 127.0.0.0/8, except what has
// a route of another program.
[[nodiscard]] std::vector<AddressRange> own_ranges(std::span<const Interface> interfaces, Family family);
// Tells whether the route is to a part of the range, and not to all of it.
[[nodiscard]] bool is_to_part(const Route& route, const AddressRange& of);
// Returns the IPv4 routes of table main to parts of what is local. They are found first where both tables are one.
[[nodiscard]] std::vector<const Route*> main_routes_within_local(const PodView& pod);
// Returns the last address of each IPv4 network of the interface, and the first one until kernel 5.14.
[[nodiscard]] std::vector<AddressRange> broadcast_ranges(const Interface& interface, bool first_is_broadcast);

}  // namespace sidetrack
