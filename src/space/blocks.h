// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace sidetrack::space {

// Keeps lists for as long as it exists, many to an allocation: none of them moves.
template <typename Item>
class Blocks {
 public:
  std::span<const Item> keep(std::span<const Item> items) {
    if (free_ < items.size()) {
      free_ = std::max(usual_size, items.size());
      blocks_.push_back(std::make_unique<Item[]>(free_));
      bytes_ += free_ * sizeof(Item);
      end_ = blocks_.back().get();
    }
    Item* const first = end_;
    end_ = std::ranges::copy(items, first).out;
    free_ -= items.size();
    return {first, items.size()};
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  static constexpr std::size_t usual_size = 4096;  // items
  std::vector<std::unique_ptr<Item[]>> blocks_;
  Item* end_ = nullptr;  // of what is used of the last block
  std::size_t free_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace sidetrack::space
