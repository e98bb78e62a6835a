// SPDX-License-Identifier: GPL-2.0-or-later
// E. W. Myers, "An O(ND) Difference Algorithm and Its Variations", 1986. Items of the first sequence are columns, those
// of the second rows; a path from (0, 0) removes by a step to the right, adds by a step down, and keeps by a diagonal
// one.
#include "apply/edit_script.h"

#include <algorithm>

namespace sidetrack {
namespace {

constexpr std::size_t most_changes = 1000;  // of a round

// By the number of changes, then by the diagonal, from as many rows below the first to as many columns right of it: the
// column that is furthest to the right. What lies outside of both sequences is never the same.
using Furthest = std::vector<std::vector<std::size_t>>;

bool adds(const Furthest& furthest, std::size_t changes, std::size_t diagonal) {
  const auto& before = furthest[changes - 1];
  return diagonal == 0 || (diagonal != changes && before[diagonal - 1] < before[diagonal]);
}

std::size_t first_column(const Furthest& furthest, std::size_t changes, std::size_t diagonal) {
  if (changes == 0) return 0;
  const auto& before = furthest[changes - 1];
  return adds(furthest, changes, diagonal) ? before[diagonal] : before[diagonal - 1] + 1;
}

}  // namespace

std::vector<Edit> edit_script(std::size_t before, std::size_t after,
                              const std::function<bool(std::size_t before, std::size_t after)>& same) {
  std::vector<Edit> script;
  std::size_t from_column = 0, from_row = 0;
  while (from_column < before || from_row < after) {
    const std::size_t columns = before - from_column, rows = after - from_row;
    Furthest furthest;
    std::size_t column = 0, row = 0, changes = 0;  // of the point nearest to the end
    for (std::size_t count = 0; count <= most_changes && (column < columns || row < rows); ++count) {
      furthest.emplace_back(count + 1);
      for (std::size_t diagonal = 0; diagonal <= count; ++diagonal) {
        std::size_t x = first_column(furthest, count, diagonal);
        const auto y = [&] { return x + count - 2 * diagonal; };
        while (x < columns && y() < rows && same(from_column + x, from_row + y())) ++x;
        furthest[count][diagonal] = x;
        if (x > columns || y() > rows || x + y() <= column + row) continue;
        column = x, row = y(), changes = count;
      }
    }
    // Backwards from there.
    const auto middle = static_cast<std::ptrdiff_t>(script.size());
    const std::size_t next_column = from_column + column, next_row = from_row + row;
    const auto put = [&](Edit::Kind kind) { script.push_back({kind, from_column + column, from_row + row}); };
    for (;; --changes) {
      const std::size_t diagonal = (changes + column - row) / 2;
      for (const std::size_t first = first_column(furthest, changes, diagonal); column > first;) {
        --column, --row;
        put(Edit::Kind::same);
      }
      if (changes == 0) break;
      const bool is_added = adds(furthest, changes, diagonal);
      (is_added ? row : column) -= 1;
      put(is_added ? Edit::Kind::added : Edit::Kind::removed);
    }
    std::reverse(script.begin() + middle, script.end());
    from_column = next_column, from_row = next_row;
  }
  return script;
}

}  // namespace sidetrack
