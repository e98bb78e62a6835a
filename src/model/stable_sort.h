// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <ranges>
#include <utility>
#include <vector>

namespace sidetrack {

// Returns the indexes in order; of equal ones the first is first.
[[nodiscard]] std::vector<std::size_t> stable_order(std::size_t count,
                                                    const std::function<bool(std::size_t, std::size_t)>& is_before);

// Sorts as std::ranges::stable_sort does, of which each type adds 3 KB to the program.
template <typename Range, typename Compare = std::ranges::less, typename Projection = std::identity>
void sort_stably(Range&& all, Compare compare = {}, Projection projection = {}) {
  const auto first = std::ranges::begin(all);
  const auto at = [&](std::size_t index) -> decltype(auto) { return first[static_cast<std::ptrdiff_t>(index)]; };
  const auto order = stable_order(std::ranges::size(all), [&](std::size_t a, std::size_t b) {
    return std::invoke(compare, std::invoke(projection, at(a)), std::invoke(projection, at(b)));
  });
  std::vector<std::ranges::range_value_t<Range>> sorted;
  sorted.reserve(order.size());
  for (const std::size_t index : order) sorted.push_back(std::move(at(index)));
  std::move(sorted.begin(), sorted.end(), first);
}

}  // namespace sidetrack
