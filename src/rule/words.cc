// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/words.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "model/printable.h"

namespace sidetrack {

std::string masked(std::uint32_t value, std::uint32_t mask) {
  return mask == all_bits ? fmt::format("{}", value) : fmt::format("{:#x}/{:#x}", value, mask);
}

std::string in_quotes(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '\'') quoted += '\\';
    quoted += c;
  }
  return fmt::format("\"{}\"", printable(quoted));
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::optional<std::string> bit_names(std::uint32_t bits, BitNames names, std::string_view between) {
  std::string text;
  for (const std::string_view name : names) {
    const bool is_set = (bits & 1) != 0;
    if (is_set && name.empty()) return {};
    if (is_set) text.append(text.empty() ? "" : between).append(name);
    bits >>= 1;
  }
  return bits == 0 ? std::optional(text) : std::nullopt;
}

std::optional<std::uint32_t> read_bits(std::string_view list, BitNames names) {
  std::uint32_t bits = 0;
  for (const std::string_view item : split_at_each(list, ',')) {
    const auto found = std::ranges::find(names, item);
    if (found == names.end()) return {};
    bits |= 1U << (found - names.begin());
  }
  return bits;
}

std::optional<AddressRange> network_with_mask(const Address& address, const Address& mask) {
  int length = 0;
  for (const std::uint8_t byte : mask.view()) length += std::popcount(byte);
  const AddressRange range = AddressRange::prefix(address, length);
  return range.mask() == mask ? std::optional(range) : std::nullopt;
}

std::optional<Masked> read_masked(std::string_view text) {
  const auto slash = text.find('/');
  const auto value = read_number<std::uint32_t>(text.substr(0, slash));
  const auto mask = slash == std::string_view::npos ? all_bits : read_number<std::uint32_t>(text.substr(slash + 1));
  if (!value || !mask) return {};
  return Masked{*value, *mask};
}

std::string joined_words(TargetWords words) { return fmt::format("{}", fmt::join(words, " ")); }

}  // namespace sidetrack
