// SPDX-License-Identifier: GPL-2.0-or-later
// What the drawings of rules and of the map share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sidetrack {

// What becomes of a packet, or of its way.
enum class Fate : std::uint8_t { onward, proxy, call, change, drop };
[[nodiscard]] std::string_view stroke(Fate fate);  // colours
[[nodiscard]] std::string_view fill(Fate fate);

[[nodiscard]] std::string escaped(std::string_view text);  // for SVG

// Returns lines of at most `width` characters, where words are no longer. A sentence is broken at blanks.
[[nodiscard]] std::vector<std::string> wrapped(const std::vector<std::string>& words, std::size_t width);
[[nodiscard]] std::vector<std::string> wrapped(const std::string& sentence, std::size_t width);

}  // namespace sidetrack
