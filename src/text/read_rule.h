// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rule/ruleset.h"

namespace sidetrack {

// The rule in the words of iptables_words(), "-A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN". What is not understood of it
// becomes an unknown match or target, which is said wherever it matters; the table and the families are the caller's.
// Throws Error (usage) for what is no rule.
[[nodiscard]] Rule read_rule(std::string_view words);

// Returns the words of such a rule, without quotes; options have their names of iptables-save, and the target is last.
[[nodiscard]] std::vector<std::string> rule_words(std::string_view text);

}  // namespace sidetrack
