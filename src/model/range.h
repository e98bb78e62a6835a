// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sidetrack {

// Numbers from first to last, both included; one number is a range, too. Ports and ids are in host byte order
// everywhere in the model.
template <typename Number>
struct Range {
  constexpr Range() = default;
  constexpr Range(Number one) : first(one), last(one) {}  // NOLINT: see above
  constexpr Range(Number first_, Number last_) : first(first_), last(last_) {}
  Number first{};
  Number last{};
  [[nodiscard]] bool contains(Number n) const { return first <= n && n <= last; }
  friend auto operator<=>(const Range&, const Range&) = default;
};
using PortRange = Range<std::uint16_t>;
using IdRange = Range<std::uint32_t>;
inline constexpr IdRange every_id{0, 0xffffffff};

// "80", "9000-9100"
template <typename Number>
[[nodiscard]] std::string text(const Range<Number>& range) {
  const std::string first = std::to_string(range.first);
  return range.first == range.last ? first : first + "-" + std::to_string(range.last);
}

// "80,9000-9100": a list as options take it
template <typename Number>
[[nodiscard]] std::string list_text(const std::vector<Range<Number>>& ranges) {
  std::string all;
  for (const Range<Number>& range : ranges) all += (all.empty() ? "" : ",") + text(range);
  return all;
}

}  // namespace sidetrack
