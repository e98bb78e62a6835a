// SPDX-License-Identifier: GPL-2.0-or-later
// What `nsenter` does, for this process. Errors: usage if there is no such target or it is not a network namespace,
// with the reason; not_permitted naming the capability.
#pragma once

#include <cstdint>
#include <string>

namespace sidetrack {

// A namespace by path (anything with a '/') or by the name that `ip netns` gave it: a file in /run/netns.
[[nodiscard]] std::string netns_path(const std::string& path_or_name);

void enter_netns(const std::string& path_or_name);

// The network namespace of a process; its user namespace first, if that is another one, since the rights that count for
// a network namespace are those in the user namespace that owns it.
void enter_netns_of(std::uint32_t pid);

}  // namespace sidetrack
