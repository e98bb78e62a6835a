// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/rule.h"

#include <algorithm>

#include "model/stable_sort.h"

namespace sidetrack {
namespace {

// xtables keeps interface, address and protocol in the header of a rule, whatever the order of the words was: a
// stable sort by kind puts both orders alike. PortMatch and the others keep their places among themselves.
std::vector<Match> in_kernel_order(const std::vector<Match>& matches) {
  std::vector<Match> sorted = matches;
  std::erase_if(sorted, matches_everything);
  sort_stably(sorted, {}, [](const Match& match) {
    const auto* address = std::get_if<AddressMatch>(&match);
    const auto* interface = std::get_if<InterfaceMatch>(&match);
    const bool second = (address != nullptr && address->end == End::destination) ||
                        (interface != nullptr && interface->direction == InterfaceDirection::out);
    return 2 * match.index() + (second ? 1 : 0);
  });
  return sorted;
}

}  // namespace

bool is_understood(const Rule& rule) {
  return !std::holds_alternative<UnknownTarget>(rule.target) &&
         std::ranges::all_of(rule.matches, [](const Match& match) { return is_understood(match); });
}

bool same_effect(const Rule& a, const Rule& b) {
  return a.table == b.table && a.chain == b.chain && a.target == b.target &&
         (a.matches == b.matches || in_kernel_order(a.matches) == in_kernel_order(b.matches));
}

bool operator==(const Rule& a, const Rule& b) { return a.families == b.families && same_effect(a, b); }

}  // namespace sidetrack
