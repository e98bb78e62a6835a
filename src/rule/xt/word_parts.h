// SPDX-License-Identifier: GPL-2.0-or-later
// Makes parts of words that several extensions have; see plain_words.h.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "rule/words.h"

namespace sidetrack::xt {

using Words = std::optional<std::string>;

// The text of a field that a zero ends, or that is full; nothing where a word of it would end early.
template <std::size_t size>
std::string text_of(const char (&field)[size]) {
  return {field, strnlen(field, size)};
}

inline std::string word(std::string_view text) {
  const bool plain = !text.empty() && text.find_first_of(" \t\"'\\") == std::string_view::npos;
  return plain ? std::string(text) : in_quotes(text);
}

// "5", "5:9"
inline std::string interval(unsigned first, unsigned last) {
  return first == last ? fmt::format("{}", first) : fmt::format("{}:{}", first, last);
}

// Names the options that are a bit each; nothing where another bit is set.
struct NamedBit {
  unsigned bit;
  const char* words;
};
inline Words options_of(unsigned bits, std::span<const NamedBit> named) {
  std::string words;
  for (const NamedBit& each : named) {
    if ((bits & each.bit) == 0) continue;
    words += std::string(" ") + each.words;
    bits &= ~each.bit;
  }
  if (bits != 0) return {};
  return words;
}

// A rate as iptables writes it, "5/min": so many of the longest unit of which that many are a whole number. `period` is
// the time between two packets, `second` a second in its unit.
struct Rate {
  std::string words;
  std::uint64_t seconds;  // of the unit
};
inline Rate rate(std::uint64_t period, std::uint64_t second) {
  struct Unit {
    const char* name;
    std::uint64_t seconds;
  };
  constexpr Unit units[] = {{"day", 24 * 60 * 60}, {"hour", 60 * 60}, {"min", 60}, {"sec", 1}};
  const Unit* unit = &units[0];
  for (const Unit& next : std::span(units).subspan(1)) {
    const std::uint64_t whole = next.seconds * second;
    if (period > whole || whole / period < whole % period) break;
    unit = &next;
  }
  return {fmt::format("{}/{}", unit->seconds * second / period, unit->name), unit->seconds};
}

}  // namespace sidetrack::xt
