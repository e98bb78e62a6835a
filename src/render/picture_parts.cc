// SPDX-License-Identifier: GPL-2.0-or-later
#include "render/picture_parts.h"

#include "model/scan.h"

namespace sidetrack {

std::string_view stroke(Fate fate) {
  constexpr std::string_view colors[] = {"#2da44e", "#0969da", "#57606a", "#9a6700", "#cf222e"};
  return colors[static_cast<std::size_t>(fate)];
}

std::string_view fill(Fate fate) {
  constexpr std::string_view colors[] = {"#dafbe1", "#ddf4ff", "#f6f8fa", "#fff8c5", "#ffebe9"};
  return colors[static_cast<std::size_t>(fate)];
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string_view(&c, 1);
  }
  return result;
}

std::vector<std::string> wrapped(const std::vector<std::string>& words, std::size_t width) {
  std::vector<std::string> lines;
  for (const std::string& word : words) {
    if (!lines.empty() && lines.back().size() + 1 + word.size() <= width) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

std::vector<std::string> wrapped(const std::string& sentence, std::size_t width) {
  const auto words = split(sentence, " ");
  return wrapped(std::vector<std::string>(words.begin(), words.end()), width);
}

}  // namespace sidetrack
