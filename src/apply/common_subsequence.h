// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace sidetrack {

// Returns the longest sequence of items that two sequences of these sizes have in common, as pairs of their places.
// `same` says whether an item of the first is one of the second. If more than ten million pairs stand between the
// first and the last that differ, only what is before and behind these is returned.
[[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> common_subsequence(
    std::size_t before, std::size_t after, const std::function<bool(std::size_t before, std::size_t after)>& same);

}  // namespace sidetrack
