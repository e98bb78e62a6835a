// SPDX-License-Identifier: GPL-2.0-or-later
#include "render/picture_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "mesh/describe.h"
#include "mesh/fold.h"
#include "model/iptables.h"

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
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else {
      result += c;
    }
  }
  return result;
}

std::vector<std::string> wrapped(const std::string& sentence, std::size_t width) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < sentence.size();) {
    const std::size_t end = std::min(sentence.find(' ', begin), sentence.size());
    const std::string word = sentence.substr(begin, end - begin);
    if (!lines.empty() && lines.back().size() + 1 + word.size() <= width) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
    begin = end + 1;
  }
  return lines;
}

Ruleset of_families(const Ruleset& ruleset, Families families) {
  Ruleset result;
  for (const Rule& rule : ruleset.rules) {
    if (!(rule.families & families).empty()) result.rules.push_back(rule);
  }
  return fold(result);
}

Condition condition(const Rule& rule, bool first) {
  Condition matches = short_matches(rule);
  if (matches.empty()) matches.emplace_back(first ? "everything" : "everything else");
  if (std::holds_alternative<Tproxy>(rule.target)) matches.emplace_back("(TPROXY)");
  return matches;
}

std::vector<std::string> broken(const Condition& condition, std::size_t width) {
  std::vector<std::string> lines;
  for (const std::string& match : condition) {
    if (!lines.empty() && lines.back().size() + 1 + match.size() <= width) {
      lines.back() += " " + match;
    } else {
      lines.push_back(match);
    }
  }
  return lines;
}

std::string action_label(const Target& target) { return iptables_words(target).substr(std::string_view("-j ").size()); }

std::string listener_label(std::uint16_t port, const Rule& rule) {
  const auto known = port_name(port, rule);
  return known.empty() ? fmt::format("port {}", port) : fmt::format("port {}: {}", port, known);
}

}  // namespace sidetrack
