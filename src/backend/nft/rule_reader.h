// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backend/nft/native.h"
#include "sidetrack/backend.h"

namespace sidetrack::nft {

// Where a rule stands, in the words of the model.
struct RuleContext {
  Families families;  // of the table; a rule that asks for one is for that one alone
  Table table = Table::nat;
  std::string chain;
  std::string prefix;  // what the names of the table's chains begin with, before the name of iptables
  const std::map<std::string, std::vector<std::pair<Data, Data>>>& sets;
};

// The rule of iptables that this one stands for, native or of iptables-nft. What is not understood becomes an
// UnknownMatch or UnknownTarget, so that no rule is taken for less than it is. Comments are left to the caller.
[[nodiscard]] LiveRule read_rule(const KernelRule& rule, const RuleContext& context);

}  // namespace sidetrack::nft
