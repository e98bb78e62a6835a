// SPDX-License-Identifier: GPL-2.0-or-later
// The scenarios of rules/: one folder each, with the arguments and every rendering.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "unit/read_file.h"

namespace sidetrack {

struct Scenario {
  std::string name;
  std::filesystem::path folder;
  std::map<std::string, std::string> environment;  // VARIABLE=value lines of `args`
  std::vector<std::string> arguments;              // the rest of it: split at white space, '…' kept together
};

// All of them, by name.
[[nodiscard]] const std::vector<Scenario>& scenarios();

}  // namespace sidetrack
