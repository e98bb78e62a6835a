// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>
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

// What the words of a command line are.
struct CommandWords {
  std::optional<Command> command;  // nothing: the help or the version of the program is asked for
  bool help = false;
  bool version = false;
  std::vector<Occurrence> flags;   // in the order of the table
  std::vector<std::string> words;  // that are neither options nor their values

  [[nodiscard]] const Occurrence* find(const Flag& flag) const;
  [[nodiscard]] const Occurrence* find(std::string_view name) const;
};

// The word that means `apply` in the form of istio-iptables.
inline constexpr std::string_view drop_in_name = "istio-iptables";
// The same, of `apply --cleanup-only`.
inline constexpr std::string_view drop_in_clean_name = "istio-clean-iptables";

// Reads a command line by CLI11. The first word is that of the command: its name, istio-iptables, or help and version
// with or without dashes. The rest has every form that pflag takes: -p 15001, -p15001, -p=15001, --envoy-port 15001,
// --envoy-port=15001, -n, --dry-run=false. Throws Error (usage) for a word that is no command, for an option that the
// command does not take, and for one without its value: at the end of the line, or where another option follows. A list
// of istio-iptables is empty there: -x -b '*'.
[[nodiscard]] CommandWords read_words(std::span<const std::string_view> arguments);

}  // namespace sidetrack::options
