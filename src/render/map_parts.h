// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <vector>

#include "space/universe.h"

namespace sidetrack {

// The set's values, or ranges of them, as text: "10.0.0.0/8", "15000-15010", "eth0".
[[nodiscard]] std::vector<std::string> values_of(const space::Universe& universe, const space::Intervals& set,
                                                 space::Field field, Family family);

}  // namespace sidetrack
