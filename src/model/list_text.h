// SPDX-License-Identifier: GPL-2.0-or-later
// Lists of values in a sentence: of long ones the first few, and how many more there are.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace sidetrack {

inline constexpr std::size_t shown_of_list = 5;

// "80", "80, 443", "80, 443, 8080, 9000, 9001 and 12 more"
template <typename Item, typename Text>
std::string some(const std::vector<Item>& items, const Text& text, std::size_t shown = shown_of_list) {
  std::string result;
  for (std::size_t i = 0; i < std::min(items.size(), shown); ++i) {
    result += (i == 0 ? "" : ", ") + std::string(text(items[i]));
  }
  if (items.size() > shown) result += fmt::format(" and {} more", items.size() - shown);
  return result;
}

}  // namespace sidetrack
