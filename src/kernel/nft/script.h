// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

#include "rule/mesh_rules.h"
#include "rule/ruleset.h"

namespace sidetrack {

// What `nft -f` loads: the whole of `table inet sidetrack` in the place of the one that may be there, in one
// transaction. It is what the backend nftables programs, and lists alike.
[[nodiscard]] std::string nft_script(const Ruleset& ruleset, const MeshRules& mesh);

}  // namespace sidetrack
