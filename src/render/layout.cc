// SPDX-License-Identifier: GPL-2.0-or-later
#include "render/layout.h"

#include <fmt/format.h>

namespace sidetrack {

std::string grouped(std::uint64_t number) { return fmt::format("{:L}", number); }

std::string shell_quoted(std::string_view word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(plain) == std::string_view::npos) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string_view("'\\''") : std::string_view(&c, 1);
  return quoted + "'";
}

std::string shell_words(const Reason& reason) { return reason.values == "*" ? reason.option + " '*'" : reason.flag; }

std::string reason_words(const Reason& reason) {
  if (reason.sentence.empty()) return "";
  return reason.flag.empty() ? reason.sentence : fmt::format("{} ({})", reason.sentence, shell_words(reason));
}

std::string styled(std::string_view text, Style style, bool color) {
  static constexpr std::string_view codes[] = {"0", "1", "2", "32", "31", "33", "36"};
  if (!color || style == Style::plain || text.empty()) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", codes[static_cast<std::size_t>(style)], text);
}

}  // namespace sidetrack
