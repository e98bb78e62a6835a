// SPDX-License-Identifier: GPL-2.0-or-later
#include "render/style.h"

#include <fmt/format.h>

namespace sidetrack {

std::string styled(std::string_view text, Style style, bool color) {
  static constexpr std::string_view codes[] = {"0", "1", "2", "32", "31", "33", "36"};
  if (!color || style == Style::plain || text.empty()) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", codes[static_cast<std::size_t>(style)], text);
}

}  // namespace sidetrack
