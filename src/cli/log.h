// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <source_location>
#include <string_view>

#include "sidetrack/config.h"

namespace sidetrack::cli {

// Where lines go when no --log_target is given, and how they look.
enum class LogForm : std::uint8_t {
  istio,  // the drop-in form: "2026-01-31T12:00:00.000000Z<TAB>info<TAB>message" on standard output
  plain   // everything else: "sidetrack: message" on standard error
};

// Until this is called, warnings and errors go to standard error in the plain form. Throws Error (usage) for a target
// that cannot be written.
void start_log(const LogOptions& options, LogForm form, bool standard_output_is_taken);

void log(LogOptions::Level level, std::string_view message,
         std::source_location from = std::source_location::current());
inline void debug(std::string_view message, std::source_location from = std::source_location::current()) {
  log(LogOptions::Level::debug, message, from);
}
inline void info(std::string_view message, std::source_location from = std::source_location::current()) {
  log(LogOptions::Level::info, message, from);
}
inline void warn(std::string_view message, std::source_location from = std::source_location::current()) {
  log(LogOptions::Level::warn, message, from);
}
inline void error(std::string_view message, std::source_location from = std::source_location::current()) {
  log(LogOptions::Level::error, message, from);
}
[[nodiscard]] bool logs(LogOptions::Level level);

}  // namespace sidetrack::cli
