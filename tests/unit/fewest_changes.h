// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace sidetrack::testing {

// Returns how many letters have to be added and removed to make one text of the other: by the longest common
// subsequence, one table entry for each pair.
inline std::size_t fewest_changes(const std::string& before, const std::string& after) {
  std::vector<std::vector<std::size_t>> common(before.size() + 1, std::vector<std::size_t>(after.size() + 1));
  for (std::size_t x = 0; x < before.size(); ++x) {
    for (std::size_t y = 0; y < after.size(); ++y)
      common[x + 1][y + 1] = before[x] == after[y] ? common[x][y] + 1 : std::max(common[x][y + 1], common[x + 1][y]);
  }
  return before.size() + after.size() - 2 * common[before.size()][after.size()];
}

}  // namespace sidetrack::testing
