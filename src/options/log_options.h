// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sidetrack {

inline constexpr std::string_view log_levels = "debug|info|warn|error|fatal|none";  // in the order of LogOptions::Level

struct LogOptions {
  // --log_output_level: the level of the "default" scope; other scopes are accepted and have no effect here.
  enum class Level : std::uint8_t { debug, info, warn, error, fatal, none };
  Level level = Level::info;
  bool json = false;
  bool caller = false;               // --log_caller names a scope that covers "default" or "all"
  std::vector<std::string> targets;  // --log_target: "stdout", "stderr" or a path; empty: not given
};

}  // namespace sidetrack
