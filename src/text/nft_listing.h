// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "text/nft_tables.h"
#include "text/pasted_lines.h"

namespace sidetrack {

// Whether a table begins in the line, "table ip nat {", with a prompt or a log's time before it.
[[nodiscard]] bool opens_nft_table(std::string_view line);

// Adds a chain that may decide at each hook, as one may be missing from the text.
void leave_open(NftTable& table, std::string_view why);

// Takes one table off the lines, of which the first opens it. A statement that is not understood is kept as words, with
// what it may be a part of. Throws Error (usage) for what is nested too deeply.
[[nodiscard]] NftTable take_nft_table(std::span<const PastedLine>& lines);

}  // namespace sidetrack
