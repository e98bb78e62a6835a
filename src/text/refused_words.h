// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <span>
#include <string>

namespace sidetrack {

// Returns why iptables takes no rule of these words: "'--dport 99999': expected …"; empty: it takes it, as far as is
// known. See rule_words().
[[nodiscard]] std::string why_refused(std::span<const std::string> words);

}  // namespace sidetrack
