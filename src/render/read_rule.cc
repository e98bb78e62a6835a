// SPDX-License-Identifier: GPL-2.0-or-later
#include "render/read_rule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <vector>

#include "model/error.h"
#include "model/printable.h"

namespace sidetrack {
namespace {

using Words = std::vector<std::string>;

// As iptables-save writes them: a word with spaces stands in quotes, with \ before quotes and backslashes.
Words split(std::string_view text) {
  Words words;
  bool quoted = false;
  bool open = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ' && !quoted) {
      open = false;
      continue;
    }
    if (!open) words.emplace_back();
    open = true;
    if (c == '"') {
      quoted = !quoted;
    } else if (c == '\\' && quoted && i + 1 < text.size()) {
      words.back() += text[++i];
    } else {
      words.back() += c;
    }
  }
  return words;
}

std::vector<Match> matches(std::span<const std::string> words) {
  std::vector<Match> result;
  std::string_view module;
  for (std::size_t i = 0; i < words.size();) {
    const std::size_t start = i;
    if (words[i] == "-m" && i + 1 < words.size()) {
      module = words[i + 1];
      i += 2;
    }
    const bool negated = i < words.size() && words[i] == "!";
    const std::size_t option = i + (negated ? 1 : 0);
    const auto found = option + 1 < words.size() ? read_match({module, words[option], words[option + 1], negated})
                                                 : std::optional<Match>();
    if (!found) {  // where it ends is not known either
      result.emplace_back(UnknownMatch{joined_words(words.subspan(start))});
      return result;
    }
    result.push_back(*found);
    i = option + 2;
  }
  return result;
}

}  // namespace

Rule read_rule(std::string_view text) {
  const Words all = split(text);
  std::span<const std::string> words(all);
  const auto refuse = [&] {
    throw Error(ExitCode::usage,
                fmt::format("'{}': expected a rule as iptables -S writes it: -A CHAIN …", excerpt(text)));
  };
  if (words.size() < 2 || (words[0] != "-A" && words[0] != "-I")) refuse();
  Rule rule;
  rule.chain = words[1];
  if (words[0] == "-I") {
    const auto place = words.size() > 2 ? read_number<unsigned>(words[2]) : std::nullopt;
    if (!place || *place == 0) refuse();
    rule.insert_at = place;
    words = words.subspan(1);
  }
  words = words.subspan(2);
  const auto target = std::ranges::find_if(words, [](const std::string& word) { return word == "-j" || word == "-g"; });
  const auto before = static_cast<std::size_t>(target - words.begin());
  if (before > 0 && !words[0].starts_with('-') && words[0] != "!") refuse();
  rule.matches = matches(words.first(before));
  if (target == words.end()) {
    rule.target = NonTerminating{};
  } else {
    const auto after = words.subspan(before);
    rule.target = after.size() > 1 ? read_target(after) : Target(UnknownTarget{joined_words(after)});
  }
  return rule;
}

}  // namespace sidetrack
