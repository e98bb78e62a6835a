// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <utility>

#include "space/regions.h"

namespace sidetrack {

// What `render --format json` or `show --json` has written.
struct RulesText {
  std::string name;  // for messages
  std::string text;
};
// Of a file; "-": standard input. Throws Error (usage) if it cannot be read.
[[nodiscard]] RulesText rules_of_file(const std::string& path);

// The rules of two texts, in pods of documentation addresses that have the interfaces which either names. Throws Error
// (usage) for what is no such text.
[[nodiscard]] std::pair<space::Side, space::Side> read_sides(const RulesText& one, const RulesText& other);

}  // namespace sidetrack
