// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <span>

#include "text/iptables_text.h"

namespace sidetrack {

// Reads what iptables has printed (see iptables_text.h), `nft list ruleset` and `nft -j list ruleset`, several of them
// together, in one text or in some: rules of nft become those that the kernel's would. A table of iptables that both
// have printed is read of iptables, of which nft prints less. Throws Error (usage) as read_iptables_texts(), and for
// JSON that is not whole.
[[nodiscard]] RulesOfTexts read_texts(std::span<const RulesText> texts, bool leaves_agents);

}  // namespace sidetrack
