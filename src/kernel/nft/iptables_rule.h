// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>
#include <vector>

#include "kernel/nft/transaction.h"
#include "rule/nft/expression.h"
#include "rule/ruleset.h"

namespace sidetrack::nft {

// A rule as iptables-nft 1.8.9 writes it, so that it lists it as its own: what stands in the header of a rule of legacy
// iptables and the matches of tcp, udp and mark as native expressions, all else as the extensions of xtables.
// Throws std::logic_error for what iptables cannot hold.
struct IptablesRule {
  std::vector<Expression> expressions;
  std::optional<Transaction::Compat> compat;
};
[[nodiscard]] IptablesRule iptables_rule(const Rule& rule, Family family);

}  // namespace sidetrack::nft
