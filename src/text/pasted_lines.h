// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sidetrack {

struct PastedLine {
  std::size_t number = 0;  // counted from 1
  std::string text;
  bool ends_blank = false;  // a blank behind it was removed
  bool ends_text = false;   // without the end of a line
  std::size_t margin = 0;   // in characters: what was removed before it
  bool lacks_end = false;   // of nft: its chain is closed behind it, without ; or the end of a line between
};

[[nodiscard]] bool contains_any(std::string_view line, std::span<const std::string_view> words);

// Tells whether the line stands for others that were omitted: "...", "# […]", "<snip>", "-- 12 lines omitted --".
[[nodiscard]] bool stands_for_lines(std::string_view line);

// Returns the lines of a text that was pasted into an issue or a chat, without what is added on the way: fences, quote
// marks, colours, carriage returns, typographic quotes and dashes, blanks at the ends. Skips empty lines.
[[nodiscard]] std::vector<PastedLine> pasted_lines(std::string_view text);

}  // namespace sidetrack
