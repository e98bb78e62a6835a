// SPDX-License-Identifier: GPL-2.0-or-later
#include "apply/common_subsequence.h"

#include <algorithm>
#include <cstdint>

namespace sidetrack {

std::vector<std::pair<std::size_t, std::size_t>> common_subsequence(
    std::size_t before, std::size_t after, const std::function<bool(std::size_t before, std::size_t after)>& same) {
  std::vector<std::pair<std::size_t, std::size_t>> common;
  std::size_t x = 0, y = 0, tail = 0;
  for (; x < before && y < after && same(x, y); ++x, ++y) common.emplace_back(x, y);
  for (; x < before && y < after && same(before - 1, after - 1); ++tail) --before, --after;

  const std::size_t width = after - y + 1;
  if ((before - x) * (after - y) <= 10'000'000) {
    // How many items the rests from (i, j) on have in common: at most the square root of the bound.
    std::vector<std::uint16_t> lengths((before - x + 1) * width);
    const auto length = [&, x0 = x, y0 = y](std::size_t i, std::size_t j) -> std::uint16_t& {
      return lengths[(i - x0) * width + j - y0];
    };
    for (std::size_t i = before; i-- > x;) {
      for (std::size_t j = after; j-- > y;)
        length(i, j) = same(i, j) ? static_cast<std::uint16_t>(length(i + 1, j + 1) + 1)
                                  : std::max(length(i + 1, j), length(i, j + 1));
    }
    while (x < before && y < after) {
      if (same(x, y)) {
        common.emplace_back(x++, y++);
      } else if (length(x + 1, y) >= length(x, y + 1)) {
        ++x;
      } else {
        ++y;
      }
    }
  }
  for (; tail > 0; --tail) common.emplace_back(before++, after++);
  return common;
}

}  // namespace sidetrack
