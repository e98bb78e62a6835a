// SPDX-License-Identifier: GPL-2.0-or-later
// The pieces that the JSON documents share.
#pragma once

#include <nlohmann/json.hpp>

#include "sidetrack/diff.h"
#include "sidetrack/plan.h"

namespace sidetrack {

using Json = nlohmann::ordered_json;

[[nodiscard]] Json families_json(Families families);      // ["ipv4", "ipv6"]
[[nodiscard]] Json routing_json(const Routing& routing);  // {"rules": […], "routes": […], "addresses": […]}

[[nodiscard]] Json comparison_json(const Comparison& comparison);

}  // namespace sidetrack
