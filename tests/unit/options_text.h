// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "model/error.h"
#include "options/options.h"

namespace sidetrack::testing {

using Variables = std::map<std::string, std::string, std::less<>>;

inline CommandLine parse_arguments(const std::vector<std::string_view>& arguments, const Variables& variables = {}) {
  return parse(arguments, [&](std::string_view name) -> std::optional<std::string_view> {
    const auto found = variables.find(name);
    return found != variables.end() ? std::optional<std::string_view>(found->second) : std::nullopt;
  });
}

// Arguments separated by blanks; '' is the empty one.
inline CommandLine parse_text(std::string_view text, const Variables& variables = {}) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word == "''" ? "" : word);
  return parse_arguments({words.begin(), words.end()}, variables);
}

}  // namespace sidetrack::testing
