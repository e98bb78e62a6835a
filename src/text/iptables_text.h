// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "rule/live.h"
#include "text/read_rules.h"

namespace sidetrack {

struct RulesOfTexts {
  std::vector<Live> live;          // as they are read from the kernel that printed them
  std::vector<std::string> notes;  // what the texts leave open, and how it was taken: for people
};

// Reads what iptables-save, ip6tables-save, `iptables -S`, `iptables -L -n -v` or istio-init have printed, several of
// them together. Throws Error (usage) naming the file and the line where it cannot be told which table or family rules
// are of, and for a text without rules. `leaves_agents`: rules of an ambient pod count as an agent's. `otherwise` is
// the backend of rules that do not say theirs.
[[nodiscard]] RulesOfTexts read_iptables_texts(std::span<const RulesText> texts, bool leaves_agents,
                                               BackendKind otherwise = BackendKind::iptables_legacy);

// A jump to a chain that the text does not have leads nowhere that is known: makes it a target that is not understood.
// Returns the names of those chains, printable.
std::set<std::string> forget_missing_chains(std::span<LiveChain> chains);

}  // namespace sidetrack
