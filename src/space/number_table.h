// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sidetrack::space {

// Finds the numbers of things by their hashes. The things themselves are in a list of whoever asks.
class NumberTable {
 public:
  // Returns where the number of the thing is kept, and one; 0: there is none yet, and the next number and one is to be
  // put there. `count`: how many have numbers; `hash_of`: their hashes; `is`: whether one of that hash is the thing.
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
    for (std::uint32_t number = 0; number < count; ++number) {
      std::size_t at = hash_of(number) & (slots_.size() - 1);
      while (slots_[at] != 0) at = next(at);
      slots_[at] = number + 1;
    }
  }

  std::vector<std::uint32_t> slots_;  // their count is a power of two
};

}  // namespace sidetrack::space
