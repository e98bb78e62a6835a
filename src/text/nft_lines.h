// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <vector>

#include "text/pasted_lines.h"

namespace sidetrack {

// Returns the lines as `nft list ruleset` would print them: a table's statements one by one, however they were written.
[[nodiscard]] std::vector<PastedLine> as_nft_lists(std::vector<PastedLine> lines);

}  // namespace sidetrack
