// SPDX-License-Identifier: GPL-2.0-or-later
// The words of iptables that several kinds of match and target share, written and read.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/address.h"
#include "model/protocol.h"
#include "model/range.h"
#include "model/scan.h"

namespace sidetrack {

// An option of a match: "-m MODULE ! --NAME VALUE".
struct MatchOption {
  std::string_view module;  // empty: none was named
  std::string_view name;    // "-s", "--dport"
  std::string_view value;
  bool negated = false;
};

// The name of a target and its options: -j NAME OPTION…
using TargetWords = std::span<const std::string>;

inline constexpr std::uint32_t all_bits = 0xffffffff;

[[nodiscard]] inline const char* exclamation(bool negated) { return negated ? "! " : ""; }
[[nodiscard]] inline char letter(End end) { return end == End::source ? 's' : 'd'; }

// "80,9000:9100"
template <typename Number>
[[nodiscard]] std::string listed(std::span<const Range<Number>> ranges, char dash) {
  std::string text;
  for (const auto& range : ranges) {
    if (!text.empty()) text += ",";
    text += range.first == range.last ? fmt::format("{}", range.first)
                                      : fmt::format("{}{}{}", range.first, dash, range.last);
  }
  return text;
}

// "1337", "0x1/0xff"
[[nodiscard]] std::string masked(std::uint32_t value, std::uint32_t mask);
// As iptables-save quotes.
[[nodiscard]] std::string in_quotes(std::string_view text);
[[nodiscard]] std::string hex(std::string_view bytes);

// Returns the names of the bits that are set, "SYN,ACK"; nothing if one of them has none. `names` has that of each bit,
// the lowest first; an empty one is none.
using BitNames = std::span<const std::string_view>;
[[nodiscard]] std::optional<std::string> bit_names(std::uint32_t bits, BitNames names, std::string_view between = ",");

// Reading: nothing for what is not understood, to the last character.

// As strtoul(3) reads them: 80, 0x50, 0120.
template <typename Number>
[[nodiscard]] std::optional<Number> read_number(std::string_view text) {
  if (text.starts_with("0x")) return to_number<Number>(text.substr(2), 16);
  return to_number<Number>(text, text.starts_with('0') ? 8 : 10);
}

// Each item of a list.
template <typename Value, typename Read>
[[nodiscard]] std::optional<std::vector<Value>> read_each(std::string_view list, const Read& read) {
  std::vector<Value> values;
  for (const std::string_view item : split_at_each(list, ',')) {
    const std::optional<Value> value = read(item);
    if (!value) return {};
    values.push_back(*value);
  }
  return values;
}

template <typename Number>
[[nodiscard]] std::optional<std::vector<Range<Number>>> read_ranges(std::string_view list, char dash) {
  return read_each<Range<Number>>(list, [&](std::string_view item) -> std::optional<Range<Number>> {
    const auto at = item.find(dash);
    const auto first = read_number<Number>(item.substr(0, at));
    const auto last = at == std::string_view::npos ? first : read_number<Number>(item.substr(at + 1));
    if (!first || !last || *first > *last) return {};
    return Range<Number>{*first, *last};
  });
}

// Returns the bits of such names.
[[nodiscard]] std::optional<std::uint32_t> read_bits(std::string_view list, BitNames names);

// Returns the network of an address with that mask; nothing if the mask has holes.
[[nodiscard]] std::optional<AddressRange> network_with_mask(const Address& address, const Address& mask);

struct Masked {
  std::uint32_t value = 0;
  std::uint32_t mask = all_bits;
};
[[nodiscard]] std::optional<Masked> read_masked(std::string_view text);

[[nodiscard]] std::string joined_words(TargetWords words);

}  // namespace sidetrack
