// SPDX-License-Identifier: GPL-2.0-or-later
// What the registers of nf_tables hold at a point of a rule: where each value came from, and what became of it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "rule/nft/comparison.h"

namespace sidetrack::nft {

// 16 registers of 4 bytes, or, by their other numbers, 4 of 16.
class Registers {
 public:
  // False if the kernel knows no such register.
  bool load(std::uint32_t number, Value value);
  void forget(const std::string& words);  // all: something that is not understood wrote to some
  // The values that `size` bytes from this register on are made of; the last may be read in part. Empty if that is not
  // known.
  [[nodiscard]] std::vector<Value> read(std::uint32_t number, std::uint32_t size) const;
  // The one value that begins in this register, or nullptr.
  [[nodiscard]] const Value* at(std::uint32_t number) const;
  [[nodiscard]] const std::string& forgotten() const { return forgotten_; }

 private:
  struct Slot {
    const Value* value = nullptr;
    std::uint32_t word = 0;  // of the value
  };
  static std::optional<std::size_t> slot_of(std::uint32_t number);

  std::deque<Value> values_;  // never moved
  std::array<Slot, 16> slots_{};
  std::string forgotten_;
};

}  // namespace sidetrack::nft
