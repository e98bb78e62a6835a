// SPDX-License-Identifier: GPL-2.0-or-later
// What `nsenter` does, for this process. The user namespace that owns the network namespace is entered first, if it is
// another one: the rights that count for a network namespace are those in its owner, and the kernel takes -m owner
// rules from there alone (owner_check() of xt_owner). Errors: usage if there is no such target or it is not a network
// namespace, with the reason; not_permitted naming the capability.
#pragma once

#include <cstdint>
#include <string>

namespace sidetrack {

// A namespace by path (anything with a '/') or by the name that `ip netns` gave it: a file in /run/netns.
[[nodiscard]] std::string netns_path(const std::string& path_or_name);

void enter_netns(const std::string& path_or_name);

// The network namespace of a process.
void enter_netns_of(std::uint32_t pid);

}  // namespace sidetrack
