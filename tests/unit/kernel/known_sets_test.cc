// SPDX-License-Identifier: GPL-2.0-or-later
// The sets of ip_set by the numbers that rules have, and by their names.
#include "kernel/known_sets.h"

#include <gtest/gtest.h>

#include "model/error.h"
#include "unit/live_rules.h"

namespace sidetrack {
namespace {

KnownSets pods() {
  KnownSet set;
  set.name = "pods";
  set.members = {*AddressRange::parse("10.0.0.1")};
  return {{4, set}};
}

SetMatch numbered(std::uint16_t index) {
  SetMatch match;
  match.index = index;
  return match;
}

// Each set is asked by one rule.
std::vector<LiveChain> asking(const std::vector<SetMatch>& sets) {
  std::vector<std::pair<std::vector<Match>, Target>> rules;
  for (const SetMatch& set : sets) rules.push_back({{ProtocolMatch{}, set}, Verdict::drop});
  return {chain(Family::ipv4, Table::nat, "OUTPUT", false, rules)};
}
const SetMatch& set_of(const Rule& rule) { return std::get<SetMatch>(rule.matches.at(1)); }

TEST(KnownSets, AreNamedWhereRulesAskThem) {
  std::vector<LiveChain> chains = asking({numbered(4)});
  name_sets(chains, pods());
  const SetMatch& named = set_of(chains.front().rules.front().rule);
  EXPECT_EQ(named.name, "pods");
  EXPECT_EQ(named.members, pods().at(4).members);
}

// Made after the sets were listed, or no set is known at all: the rule is about a set without a name.
TEST(KnownSets, OneThatIsNotKnownHasNoName) {
  for (const KnownSets& known : {pods(), KnownSets{}}) {
    std::vector<LiveChain> chains = asking({numbered(5), numbered(5)});
    name_sets(chains, known);
    for (const LiveRule& live : chains.front().rules) {
      EXPECT_EQ(set_of(live.rule).name, "");
      EXPECT_EQ(set_of(live.rule).members, std::nullopt);
    }
  }
}

}  // namespace
}  // namespace sidetrack
