// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sidetrack::space {

// Maps hashes to indexes into an array that the caller owns: a hash table with open addressing and linear probing.
class NumberTable {
 public:
  // Returns the slot of the element, which holds its index plus 1; 0: it is not in the array, and the caller appends it
  // and stores its index plus 1. `count`: elements of the array; `hash_of`: the hash of one by its index; `is`: whether
  // the one at that index equals the element.
  template <typename HashOf, typename Is>
  std::uint32_t& slot(std::uint32_t hash, std::size_t count, const HashOf& hash_of, const Is& is) {
    if (2 * (count + 1) > slots_.size()) grow(count, hash_of);
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at] != 0 && !(hash_of(slots_[at] - 1) == hash && is(slots_[at] - 1))) at = next(at);
    return slots_[at];
  }

 private:
  [[nodiscard]] std::size_t next(std::size_t at) const { return (at + 1) & (slots_.size() - 1); }

  template <typename HashOf>
  void grow(std::size_t count, const HashOf& hash_of) {
    slots_.assign(std::max<std::size_t>(64, 2 * slots_.size()), 0);
    for (std::uint32_t index = 0; index < count; ++index) {
      std::size_t at = hash_of(index) & (slots_.size() - 1);
      while (slots_[at] != 0) at = next(at);
      slots_[at] = index + 1;
    }
  }

  std::vector<std::uint32_t> slots_;  // their count is a power of two
};

}  // namespace sidetrack::space
