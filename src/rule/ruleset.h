// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rule/rule.h"

namespace sidetrack {

// Rules in the order in which they are built, as iptables-restore takes them.
struct Ruleset {
  std::vector<Rule> rules;
  bool folded = false;  // by fold(), or as a table that holds such rules had them: they stay as they are
};

// A chain as the kernel walks it, -I resolved.
struct Chain {
  Table table = Table::nat;
  std::string name;
  std::vector<const Rule*> rules;
};

// The chains of one table that rules of any of `families` use: built-in ones (PREROUTING, INPUT, FORWARD, OUTPUT,
// POSTROUTING) and our own, in the order in which upstream creates them: chains that hold rules by first use, then
// chains that are only jumped to. The pointers are into `ruleset`.
[[nodiscard]] std::vector<Chain> chains(const Ruleset& ruleset, Table table, Families families);
[[nodiscard]] bool is_builtin(std::string_view chain);

}  // namespace sidetrack
