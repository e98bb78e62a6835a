// SPDX-License-Identifier: GPL-2.0-or-later
// The log of the injector: lines on standard error, as Kubernetes collects them.
#pragma once

#include <string_view>

namespace sidetrack::injector {

void log_debug_too();
void debug(std::string_view message);
void info(std::string_view message);
void warn(std::string_view message);
void error(std::string_view message);

}  // namespace sidetrack::injector
