// SPDX-License-Identifier: GPL-2.0-or-later
// What makes a shell complete the command line: a script made from the table of flags (flags.h).
#pragma once

#include <string>

#include "options/options.h"

namespace sidetrack {

// For the commands sidetrack and istio-iptables. In bash and zsh the script runs no program at all.
[[nodiscard]] std::string completion(Shell shell);

}  // namespace sidetrack
