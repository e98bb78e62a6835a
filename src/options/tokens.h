// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "options/flags.h"

namespace sidetrack::options {

// A flag of the command line with its values as given; "" where the value was left out, "true" if it is a boolean.
struct Occurrence {
  const Flag* flag;
  std::vector<std::string> values;
};

struct Tokens {
  std::vector<Occurrence> flags;  // in the order of the table
  std::vector<std::string> words;

  [[nodiscard]] const Occurrence* find(const Flag& flag) const;
};

// The arguments of a command, in every form that pflag takes: -p 15001, -p15001, -p=15001, --envoy-port 15001,
// --envoy-port=15001, -n, --dry-run=false. An option that is directly followed by another option or by the end of the
// line has the empty value. Throws Error (usage) for an option that the command does not take.
[[nodiscard]] Tokens tokenize(std::span<const std::string_view> arguments, Command command);

}  // namespace sidetrack::options
