// SPDX-License-Identifier: GPL-2.0-or-later
// What the scripts of all shells have in common.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "options/flags.h"

namespace sidetrack::completion_script {

[[nodiscard]] std::string bash();
[[nodiscard]] std::string zsh();
[[nodiscard]] std::string fish();

// Where the values of an option come from, beside fixed words.
enum class Source : std::uint8_t { none, files, namespaces, processes, interfaces };

struct Offer {
  std::vector<std::string_view> words;
  Source source = Source::none;
};

// By what the table says of the option's value: its choices, else the name of the value.
[[nodiscard]] Offer offer(const Flag& flag);

// The names of the commands that take the flag.
[[nodiscard]] std::vector<std::string_view> takers(const Flag& flag);

[[nodiscard]] std::string joined(const std::vector<std::string_view>& words);  // with a blank between them
[[nodiscard]] std::string replaced(std::string_view text, char what, std::string_view by);

}  // namespace sidetrack::completion_script
