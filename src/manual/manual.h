// SPDX-License-Identifier: GPL-2.0-or-later
// The manual page sidetrack(8), made from the table of flags (flags.h). The build writes it; the program does not hold
// it.
#pragma once

#include <string>

namespace sidetrack {

// In the language of mdoc(7).
[[nodiscard]] std::string manual();

}  // namespace sidetrack
