// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/stable_sort.h"

#include <algorithm>
#include <numeric>

namespace sidetrack {

std::vector<std::size_t> stable_order(std::size_t count,
                                      const std::function<bool(std::size_t, std::size_t)>& is_before) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, is_before);
  return order;
}

}  // namespace sidetrack
