// SPDX-License-Identifier: GPL-2.0-or-later
// Has what the drawings of rules, of connections and of the map share: colours, in light and in dark, and elements.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sidetrack {

// What becomes of a packet, or of its way.
enum class Fate : std::uint8_t { onward, proxy, call, change, drop };

// Sizes in pixels. No font is asked: a character is as wide as the widest usual font has it on average, in eighths,
// which doubles hold exactly: a drawing is the same on every processor.
inline constexpr double sentence_character = 6.5;     // 12 px sans-serif
inline constexpr double condition_character = 6.125;  // 10 px monospace
inline constexpr double title_character = 7.25;       // 12 px monospace, bold
inline constexpr double line_height = 14;
inline constexpr double padding = 8;
inline constexpr double margin = 20;

// Returns lines of at most `width` characters, where words are no longer. A sentence is broken at blanks.
[[nodiscard]] std::vector<std::string> wrapped(const std::vector<std::string>& words, std::size_t width);
[[nodiscard]] std::vector<std::string> wrapped(const std::string& sentence, std::size_t width);

// Returns the elements of SVG, each a line. A style is one of "band", "chain", "condition", "sentence" and "why".
[[nodiscard]] std::string text_at(double x, double y, std::string_view style, std::string_view words);
// `more`: "" is filled with the colour of its fate; " card" with that of the page, " pod" with none, and dashed.
[[nodiscard]] std::string box(double x, double y, double width, double height, double radius, Fate fate,
                              std::string_view more = "");
[[nodiscard]] std::string arrow(std::string_view path, Fate fate, bool has_head);
[[nodiscard]] std::string separator(double x, double y, double width);

// Returns the path of an arrow that begins and ends level.
[[nodiscard]] std::string curve(double x, double y, double to_x, double to_y);

// Returns the whole drawing.
[[nodiscard]] std::string picture(std::string_view title, double width, double height, std::string_view body);

}  // namespace sidetrack
