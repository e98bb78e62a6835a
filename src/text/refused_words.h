// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sidetrack {

// Returns why iptables takes no rule of these words: "'--dport 99999': expected …"; empty: it takes it, as far as is
// known. See rule_words().
[[nodiscard]] std::string why_refused(std::span<const std::string> words);

// Tells whether the word behind it is any text, which may look like an option.
[[nodiscard]] bool takes_text(std::string_view option);

}  // namespace sidetrack
