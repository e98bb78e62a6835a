// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rule/live.h"

namespace sidetrack {

// A line of `iptables -L -n -v` as iptables-save has it.
struct ListedRule {
  Family family = Family::ipv4;
  std::string words;  // without the chain: "-o lo -p tcp --dport 80 -j RETURN"
  Counters counters;  // above 99999 in thousands, as they are listed
};

// Reads a counter of such a line: 300, 12K (thousands), 5M.
[[nodiscard]] std::optional<std::uint64_t> read_count(std::string_view word);

// Reads "    5   300 RETURN     tcp  --  *      lo      0.0.0.0/0           !127.0.0.1            owner UID match
// 1337". What is not understood of its end stays in it, for an unknown match. Nothing for another line.
[[nodiscard]] std::optional<ListedRule> read_listed_rule(std::string_view line);

// Tells whether the line begins as an extension's part of a row does: "owner UID match 1337".
[[nodiscard]] bool begins_extension(std::string_view line);

}  // namespace sidetrack
