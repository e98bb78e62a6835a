// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "options/flags.h"

namespace sidetrack::options {

// A flag of the command line with its values as given; "true" if it is a boolean.
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
// --envoy-port=15001, -n, --dry-run=false. Throws Error (usage) for an option that the command does not take, and for
// one without its value: at the end of the line, or where another option follows. A list of istio-iptables is empty
// there: -x -b '*'.
[[nodiscard]] Tokens tokenize(std::span<const std::string_view> arguments, Command command);

}  // namespace sidetrack::options
