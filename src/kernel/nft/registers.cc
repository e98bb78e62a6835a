// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/nft/registers.h"

#include <linux/netfilter/nf_tables.h>

#include <algorithm>

namespace sidetrack::nft {
namespace {

std::uint32_t words_of(std::uint32_t size) { return (size + 3) / 4; }

}  // namespace

std::optional<std::size_t> Registers::slot_of(std::uint32_t number) {
  if (number >= NFT_REG_1 && number <= NFT_REG_4) return (number - NFT_REG_1) * 4;
  if (number >= NFT_REG32_00 && number <= NFT_REG32_15) return number - NFT_REG32_00;
  return std::nullopt;
}

bool Registers::load(std::uint32_t number, Value value) {
  const auto first = slot_of(number);
  const std::uint32_t words = words_of(value.size);
  if (!first || words == 0 || *first + words > slots_.size()) return false;
  values_.push_back(std::move(value));
  for (std::uint32_t word = 0; word < words; ++word) slots_[*first + word] = {&values_.back(), word};
  return true;
}

void Registers::forget(const std::string& words) {
  slots_.fill({});
  forgotten_ = words;
}

std::vector<Value> Registers::read(std::uint32_t number, std::uint32_t size) const {
  auto slot = slot_of(number);
  std::vector<Value> values;
  if (!slot) return values;
  for (std::size_t place = *slot; size > 0;) {
    if (place >= slots_.size() || slots_[place].value == nullptr || slots_[place].word != 0) return {};
    Value value = *slots_[place].value;
    const std::uint32_t words = words_of(std::min(value.size, size));
    for (std::uint32_t word = 0; word < words; ++word) {
      if (place + word >= slots_.size() || slots_[place + word].value != slots_[place].value) return {};
    }
    place += words;
    if (size < value.size) {  // its first bytes alone
      if (value.swapped || value.of == Value::Of::constant) return {};
      value.size = size;
      if (value.changed()) {
        value.mask.resize(size);
        value.xor_value.resize(size);
      }
    }
    size -= std::min(size, words * 4);
    values.push_back(std::move(value));
  }
  return values;
}

const Value* Registers::at(std::uint32_t number) const {
  const auto slot = slot_of(number);
  if (!slot || slots_[*slot].value == nullptr || slots_[*slot].word != 0) return nullptr;
  const Value* value = slots_[*slot].value;
  for (std::uint32_t word = 0; word < words_of(value->size); ++word) {
    if (*slot + word >= slots_.size() || slots_[*slot + word].value != value) return nullptr;
  }
  return value;
}

}  // namespace sidetrack::nft
