// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/iptables_order.h"

#include <algorithm>

namespace sidetrack {
namespace {

int place(const Match& match) {
  if (const auto* address = std::get_if<AddressMatch>(&match)) return address->end == End::source ? 0 : 1;
  if (const auto* interface = std::get_if<InterfaceMatch>(&match))
    return interface->direction == InterfaceDirection::in ? 2 : 3;
  return std::holds_alternative<ProtocolMatch>(match) ? 4 : 5;
}

}  // namespace

Rule in_iptables_order(Rule rule) {
  // Most are: stable_sort would allocate for each of thousands of rules.
  if (!std::ranges::is_sorted(rule.matches, {}, place)) std::ranges::stable_sort(rule.matches, {}, place);
  return rule;
}

Ruleset in_iptables_order(Ruleset ruleset) {
  for (Rule& rule : ruleset.rules) rule = in_iptables_order(std::move(rule));
  return ruleset;
}

}  // namespace sidetrack
