// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string_view>
#include <vector>

#include "text/pasted_lines.h"

namespace sidetrack {

// Returns how many braces more are open after the line: those between quotes and in comments count nothing.
[[nodiscard]] int opened_braces(std::string_view line);

// Returns the lines as `nft list ruleset` would print them: a table's statements one by one, however they were written.
[[nodiscard]] std::vector<PastedLine> as_nft_lists(std::vector<PastedLine> lines);

}  // namespace sidetrack
