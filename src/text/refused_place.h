// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rule/table.h"

namespace sidetrack {

// Returns why neither iptables nor the kernel takes a rule of these words in that chain, which why_refused() takes:
// "'-j REDIRECT': expected PREROUTING or OUTPUT of nat"; empty: it is taken, as far as is known. Without a table, and
// in a chain that is not built in, by what is known. See rule_words().
[[nodiscard]] std::string why_refused_at(std::optional<Table> table, std::string_view chain,
                                         std::span<const std::string> words);

}  // namespace sidetrack
