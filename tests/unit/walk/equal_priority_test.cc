// SPDX-License-Identifier: GPL-2.0-or-later
// Of two chains of one priority the kernel asks first the one that was registered last, which nobody can see: both ways
// are tried.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/asking.h"
#include "walk/explain.h"

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

LiveChain translating(const char* table, std::int32_t priority, const char* source) {
  LiveChain made = redirecting(table, priority, 0);
  made.hook->hook = Hook::postrouting;
  made.rules.front().rule.target = Nat{End::source, AddressRange::parse(source), {}, "snat to"};
  return made;
}

TEST(EqualPriority, SourcesAreAResultToo) {
  const Outcome either = outcome({translating("ip a", 100, "203.0.113.1"), translating("ip b", 100, "203.0.113.2")});
  EXPECT_EQ(either.kind, Outcome::Kind::unknown);
  EXPECT_THAT(either.why,
              ::testing::AllOf(::testing::HasSubstr("which is asked first of"),
                               ::testing::HasSubstr("from 203.0.113.1"), ::testing::HasSubstr("from 203.0.113.2")));
  EXPECT_EQ(outcome({translating("ip a", 100, "203.0.113.1"), translating("ip b", 100, "203.0.113.1")}).source,
            NewSource{Address::parse("203.0.113.1")});
  EXPECT_EQ(outcome({translating("ip a", 90, "203.0.113.1"), translating("ip b", 100, "203.0.113.2")}).source,
            NewSource{Address::parse("203.0.113.1")});
}

TEST(EqualPriority, TheLowerNumberIsAskedFirst) {
  EXPECT_EQ(outcome({redirecting("inet a", -90, 1), redirecting("inet b", -110, 2)}).kind, Outcome::Kind::lands);
}

}  // namespace
}  // namespace sidetrack
