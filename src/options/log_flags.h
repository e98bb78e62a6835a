// SPDX-License-Identifier: GPL-2.0-or-later
// The logging flags of Istio's programs, which are in every injected manifest.
#pragma once

#include "options/flags.h"

namespace sidetrack::options {

inline constexpr std::string_view log_levels = "debug|info|warn|error|fatal|none";  // in the order of LogOptions::Level

void set_log_output_level(CommandLine& line, const Given& given);  // "[scope:]level,…"
void set_log_as_json(CommandLine& line, const Given& given);
void set_log_target(CommandLine& line, const Given& given);
void set_log_caller(CommandLine& line, const Given& given);    // "scope,…"
void check_log_levels(CommandLine& line, const Given& given);  // of a flag that has no effect here
void check_verbosity(CommandLine& line, const Given& given);

}  // namespace sidetrack::options
