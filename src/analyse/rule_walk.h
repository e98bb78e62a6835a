// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>
#include <span>

#include "analyse/hook.h"
#include "analyse/in_flight.h"
#include "sidetrack/backend.h"
#include "sidetrack/pod.h"

namespace sidetrack {

[[nodiscard]] bool has_rules(std::span<const Live* const> live, Family family, Hook at,
                             std::optional<Table> table = {});

// Walks the packet through all base chains of one table at a hook, in the order of `live`, noting every rule that it
// meets. False: the packet is gone.
[[nodiscard]] bool walk_rules(InFlight& packet, const PodView& pod, std::span<const Live* const> live, Hook at,
                              Table table);

}  // namespace sidetrack
