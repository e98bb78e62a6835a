// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string_view>

#include "options/log_options.h"

namespace sidetrack::cli {

// Where lines go when no --log_target is given, and how they look.
enum class LogForm : std::uint8_t {
  istio,  // the drop-in form: "2026-01-31T12:00:00.000000Z<TAB>info<TAB>message" on standard output
  plain   // everything else: "sidetrack: message" on standard error
};

// Until this is called, warnings and errors go to standard error in the plain form. Throws Error (usage) for a target
// that cannot be written.
void start_log(const LogOptions& options, LogForm form, bool standard_output_is_taken);

// The log of the CNI plugin, whose standard output is taken and whose standard error nobody reads: the file that is the
// only target, else syslog.
void start_plugin_log(const LogOptions& options);

// Where in the source a message comes from: std::source_location, which clang 14 does not know.
struct From {
  const char* file;
  int line;
  static constexpr From here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
};

void log(LogOptions::Level level, std::string_view message, From from = From::here());
inline void debug(std::string_view message, From from = From::here()) { log(LogOptions::Level::debug, message, from); }
inline void info(std::string_view message, From from = From::here()) { log(LogOptions::Level::info, message, from); }
inline void warn(std::string_view message, From from = From::here()) { log(LogOptions::Level::warn, message, from); }
inline void error(std::string_view message, From from = From::here()) { log(LogOptions::Level::error, message, from); }
[[nodiscard]] bool logs(LogOptions::Level level);

}  // namespace sidetrack::cli
