// SPDX-License-Identifier: GPL-2.0-or-later
// The manual page sidetrack(8), whose tables are made from the table of flags (flags.h). The build writes it; the
// program does not hold it.
#pragma once

#include <string>
#include <string_view>

namespace sidetrack {

// Fills in docs/sidetrack.8.in. Returns the page in the language of mdoc(7).
[[nodiscard]] std::string manual(std::string_view page_template);

}  // namespace sidetrack
