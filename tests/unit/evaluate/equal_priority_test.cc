// SPDX-License-Identifier: GPL-2.0-or-later
// Of two chains of one priority the kernel asks first the one that was registered last, which nobody can see: both ways
// are tried.
#include <gtest/gtest.h>

#include "evaluate/explain.h"
#include "unit/asking.h"

namespace sidetrack {
namespace {

LiveChain redirecting(const char* table, std::int32_t priority, std::uint16_t port) {
  LiveChain made{Families::both(),
                 Table::other,
                 "c",
                 false,
                 {},
                 Verdict::accept,
                 HookPoint{Hook::output, priority, ChainType::nat, ""},
                 table};
  made.rules.push_back({{Families::both(), Table::other, "c", {}, Redirect{port}, {}, {}}, {}, false, 0});
  return made;
}

Outcome outcome(const std::vector<LiveChain>& chains) {
  Live live;
  live.backend = BackendKind::nftables;
  live.chains = chains;
  return explain(packet_of("out tcp 192.0.2.77:80"), assumed_pod(planned("")), {&live, 1}).outcome;
}

TEST(EqualPriority, IsKnownOnlyWhereTheOrderMakesNoDifference) {
  EXPECT_EQ(outcome({redirecting("inet a", -100, 1), redirecting("inet b", -100, 2)}).kind, Outcome::Kind::unknown);
  EXPECT_EQ(outcome({redirecting("inet a", -100, 1), redirecting("inet b", -100, 1)}).at.port, 1);
  EXPECT_EQ(outcome({redirecting("inet a", -100, 1)}).at.port, 1);
}

TEST(EqualPriority, TheLowerNumberIsAskedFirst) {
  EXPECT_EQ(outcome({redirecting("inet a", -90, 1), redirecting("inet b", -110, 2)}).kind, Outcome::Kind::lands);
}

}  // namespace
}  // namespace sidetrack
