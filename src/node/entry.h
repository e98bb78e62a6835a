// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

#include "options/options.h"

namespace sidetrack::cni {

// The plugin's entry in a network configuration, a JSON object on one line, as `cni install` was asked for it: what is
// left at its default is left out. Throws Error (usage) for what the plugin does not take.
[[nodiscard]] std::string entry(const CommandLine& line);

}  // namespace sidetrack::cni
