// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

namespace sidetrack {

// README.md as it is, and with the table of options that the program's own table of flags gives.
[[nodiscard]] std::string readme();
[[nodiscard]] std::string readme_with_options();

}  // namespace sidetrack
