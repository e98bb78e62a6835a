// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace sidetrack::options {

// The candidate that was probably meant: the fewest letters changed, left out, added or swapped, and not too many;
// else the only one that begins so.
[[nodiscard]] std::optional<std::string_view> nearest(std::string_view word,
                                                      const std::vector<std::string_view>& candidates);

}  // namespace sidetrack::options
