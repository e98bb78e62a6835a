// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "text/nft_tables.h"
#include "text/pasted_lines.h"

namespace sidetrack {

// Whether the JSON of `nft -j` begins in this line, or in it and the next.
[[nodiscard]] bool opens_nft_json(std::span<const PastedLine> lines);

// Takes what `nft -j list ruleset` has written off the lines, of which the first opens it. Throws Error (usage) for
// what is no JSON, or not all of it.
[[nodiscard]] std::vector<NftTable> take_nft_json(std::span<const PastedLine>& lines);

}  // namespace sidetrack
