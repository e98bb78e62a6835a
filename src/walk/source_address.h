// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>

#include "walk/route.h"

namespace sidetrack {

// The source address that the kernel chooses for a packet to `destination` that takes `route`.
[[nodiscard]] std::optional<Address> source_for(const PodView& pod, const RouteLookup& route,
                                                const Address& destination, Observer* observer = nullptr);

// The one that MASQUERADE gives to what leaves by the route.
[[nodiscard]] std::optional<Address> masquerading(const PodView& pod, const RouteLookup& route,
                                                  const Address& destination, Observer* observer = nullptr);

}  // namespace sidetrack
