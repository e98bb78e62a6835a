// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/live.h"

#include <algorithm>

namespace sidetrack {

bool treat_alike(const LiveChain& a, const LiveChain& b) {
  return a.hook == b.hook && a.policy == b.policy && a.dormant == b.dormant &&
         std::ranges::equal(a.rules, b.rules, [&](const LiveRule& one, const LiveRule& other) {
           return one.rule == other.rule && is_more_of_one(a, one) == is_more_of_one(b, other);
         });
}

const LiveChain* Live::find(Family family, Table table, std::string_view chain) const {
  const auto found = std::ranges::find_if(chains, [&](const LiveChain& one) {
    return one.families.contains(family) && one.table == table && one.name == chain;
  });
  return found != chains.end() ? &*found : nullptr;
}

std::vector<Families> scopes(BackendKind kind) {
  if (traits(kind).in_own_table) return {Families::both()};
  return {Family::ipv4, Family::ipv6};
}

}  // namespace sidetrack
