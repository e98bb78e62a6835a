// SPDX-License-Identifier: GPL-2.0-or-later
#include "state/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/iptables.h"
#include "unit/fake_backend.h"
#include "unit/usual_config.h"

namespace sidetrack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Live programmed(const Ruleset& ruleset) {
  FakeBackend backend;
  backend.replace(backend.read(), ruleset);
  return backend.live;
}

LiveChain& chain(Live& live, std::string_view name) {
  return *std::ranges::find_if(live.chains,
                               [&](const LiveChain& c) { return c.name == name && c.families == Family::ipv4; });
}

// "-" and "+" lines with their rules.
std::vector<std::string> changes(const Difference& difference) {
  std::vector<std::string> result;
  for (const ChainDiff& c : difference.chains) {
    for (const DiffLine& line : c.lines) {
      if (line.kind == DiffLine::Kind::missing) result.push_back("+" + iptables_words(line.rule));
      if (line.kind == DiffLine::Kind::extra) result.push_back("-" + iptables_words(line.rule));
    }
  }
  return result;
}

Rule foreign(const char* chain_name, Target target) {
  return {Family::ipv4, Table::nat, chain_name, {}, std::move(target), {}, {}};
}

TEST(Diff, OfWhatWasProgrammedIsEmpty) {
  const Ruleset asked = plan(injected(), dual_stack()).ruleset;
  const Live live = programmed(asked);
  EXPECT_TRUE(equal(live, asked));
  EXPECT_TRUE(diff(live, asked).empty());
}

TEST(Diff, CountersAndHandlesDoNotCount) {
  const Ruleset asked = plan(injected(), {}).ruleset;
  Live live = programmed(asked);
  chain(live, "ISTIO_OUTPUT").rules[0].counters = {7, 420};
  chain(live, "ISTIO_OUTPUT").rules[0].handle = 99;
  EXPECT_TRUE(equal(live, asked));
}

TEST(Diff, OrderCounts) {
  const Ruleset asked = plan(injected(), {}).ruleset;
  Live live = programmed(asked);
  auto& rules = chain(live, "ISTIO_INBOUND").rules;
  std::swap(rules[1], rules[2]);
  EXPECT_FALSE(equal(live, asked));
  EXPECT_THAT(changes(diff(live, asked)),
              ElementsAre("-" + iptables_words(rules[1].rule), "+" + iptables_words(rules[1].rule)));
}

TEST(Diff, MissingExtraAndDoubledRules) {
  const Ruleset asked = plan(injected(), {}).ruleset;
  Live live = programmed(asked);
  auto& output = chain(live, "OUTPUT").rules;
  output.push_back(output[0]);  // a doubled jump
  EXPECT_THAT(changes(diff(live, asked)), ElementsAre("--A OUTPUT -j ISTIO_OUTPUT"));
  output.clear();
  EXPECT_THAT(changes(diff(live, asked)), ElementsAre("+-A OUTPUT -j ISTIO_OUTPUT"));
}

TEST(Diff, NothingProgrammedMissesEverything) {
  const Ruleset asked = plan(usual(), {}).ruleset;
  const Difference difference = diff(Live{}, asked);
  EXPECT_EQ(changes(difference).size(), asked.rules.size());
  for (const ChainDiff& c : difference.chains) EXPECT_EQ(c.missing, !is_builtin(c.name)) << c.name;
}

TEST(Diff, AChainOfOursThatIsNotAskedForIsExtra) {
  const Live live = programmed(plan(usual(), {}).ruleset);
  const Difference difference = diff(live, {});
  for (const ChainDiff& c : difference.chains) EXPECT_EQ(c.extra, !is_builtin(c.name)) << c.name;
  EXPECT_EQ(difference.chains.size(), 5u);
}

TEST(Diff, OthersRulesAreContextAndAWarningWhenTheyDecideFirst) {
  const Ruleset asked = plan(usual(), {}).ruleset;
  Live live = programmed(asked);
  auto& output = chain(live, "OUTPUT").rules;
  output.insert(output.begin(), LiveRule{foreign("OUTPUT", Verdict::accept), {}, false, 0});
  output.push_back(LiveRule{foreign("OUTPUT", Verdict::drop), {}, false, 0});
  EXPECT_TRUE(equal(live, asked));
  EXPECT_THAT(diff(live, asked).warnings, ElementsAre(HasSubstr("-A OUTPUT -j ACCEPT")));
  EXPECT_THAT(changes(diff(live, asked)), IsEmpty());
}

TEST(Diff, TheOrderOfWordsDoesNotCount) {
  const Ruleset asked = plan(usual(), {}).ruleset;
  Live live = programmed(asked);
  auto& matches = chain(live, "ISTIO_OUTPUT").rules[0].rule.matches;  // -o lo -s 127.0.0.6/32
  std::swap(matches[0], matches[1]);
  EXPECT_TRUE(equal(live, asked));
}

TEST(FirstDifference, IsOfTheFirstChainWhatMattersMost) {
  const auto rule = [](const char* chain) {
    Rule made;
    made.chain = chain;
    made.target = Verdict::return_;
    return made;
  };
  Difference difference;
  EXPECT_EQ(first_difference(difference), "");
  difference.tables = {"sidetrack", "other"};
  EXPECT_EQ(first_difference(difference), "not requested: table sidetrack");
  ChainDiff& one = difference.chains.emplace_back();
  one.name = "ISTIO\nINBOUND";
  const std::string place = "table nat, chain ISTIO\\x0aINBOUND";
  EXPECT_EQ(first_difference(difference), place);
  one.dormant = true;
  EXPECT_EQ(first_difference(difference), place + ": its table is dormant");
  one.drops = true;
  EXPECT_EQ(first_difference(difference), place + ": its policy is drop");
  one.extra = true;
  EXPECT_EQ(first_difference(difference), place + ": not requested");
  one.missing = true;
  EXPECT_EQ(first_difference(difference), place + ": missing");
  one.lines = {{DiffLine::Kind::foreign, rule("A")}, {DiffLine::Kind::extra, rule("B")}};
  EXPECT_EQ(first_difference(difference), place + ": not requested: -A B -j RETURN");
  one.lines.insert(one.lines.begin() + 1, {DiffLine::Kind::missing, rule("C")});
  EXPECT_EQ(first_difference(difference), place + ": missing: -A C -j RETURN");
}

}  // namespace
}  // namespace sidetrack
