// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sidetrack::space {

// Numbers by numbers, without an allocation for each and forgotten all at once: most of the time goes by looking up.
class Memo {
 public:
  [[nodiscard]] const std::uint32_t* find(std::uint64_t key) const {
    if (size_ == 0) return nullptr;
    for (std::size_t at = place(key);; at = next(at)) {
      const Slot& slot = slots_[at];
      if (slot.generation != generation_) return nullptr;
      if (slot.key == key) return &slot.value;
    }
  }

  // `key` is not in it.
  void add(std::uint64_t key, std::uint32_t value) {
    if (2 * (used_ + 1) > size_) grow();
    std::size_t at = place(key);
    while (slots_[at].generation == generation_) at = next(at);
    slots_[at] = {key, value, generation_};
    ++used_;
  }

  [[nodiscard]] std::size_t size() const { return used_; }

  // Forgets all. Few slots are used again, however many there are: those stay in the processor's cache.
  void clear() {
    ++generation_;
    used_ = size_ = 0;
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t value = 0;
    std::uint32_t generation = 0;  // another one than now: the slot is free
  };

  [[nodiscard]] std::size_t place(std::uint64_t key) const {
    return static_cast<std::size_t>(key * 0x9e3779b97f4a7c15U >> shift_);
  }
  [[nodiscard]] std::size_t next(std::size_t at) const { return (at + 1) & (size_ - 1); }

  void grow() {
    std::vector<Slot> old;
    for (std::size_t i = 0; i < size_; ++i) {
      if (slots_[i].generation == generation_) old.push_back(slots_[i]);
    }
    const std::size_t more = size_ == 0 ? 64 : 2 * size_;
    clear();
    size_ = more;
    if (slots_.size() < size_) slots_.resize(size_);
    shift_ = 64 - std::countr_zero(size_);
    for (const Slot& slot : old) add(slot.key, slot.value);
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;  // how many of them are used now: a power of two
  std::size_t used_ = 0;
  std::uint32_t generation_ = 1;
  int shift_ = 64;
};

}  // namespace sidetrack::space
