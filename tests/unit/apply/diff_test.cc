// SPDX-License-Identifier: GPL-2.0-or-later
#include "apply/diff.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "rule/iptables.h"
#include "unit/fake_backend.h"
#include "unit/fewest_changes.h"
#include "unit/usual_config.h"

namespace sidetrack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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

// ---- The lines between two lists of rules

constexpr const char* list_chain = "ISTIO_OUTPUT";

// Makes a rule of each letter.
Ruleset rules_of(const std::string& letters) {
  Ruleset made;
  for (const char letter : letters)
    made.rules.push_back({Family::ipv4, Table::nat, list_chain, {}, Jump{std::string("ISTIO_") + letter}, {}, {}});
  return made;
}

struct Sides {
  std::string live;   // what stays and what is extra
  std::string asked;  // what stays and what is missing
  std::size_t changes = 0;
};

Sides sides_of(const std::string& live, const std::string& asked) {
  Sides sides;
  for (const ChainDiff& c : diff(programmed(rules_of(live)), rules_of(asked)).chains) {
    if (c.name != list_chain) continue;
    for (const DiffLine& line : c.lines) {
      const char letter = std::get<Jump>(line.rule.target).chain.back();
      if (line.kind != DiffLine::Kind::missing) sides.live += letter;
      if (line.kind != DiffLine::Kind::extra) sides.asked += letter;
      sides.changes += line.kind == DiffLine::Kind::same ? 0 : 1;
    }
  }
  return sides;
}

TEST(Diff, HasTheFewestLinesThatMakeOneListOfTheOther) {
  std::mt19937 random(1);
  for (int round = 0; round < 1000; ++round) {
    std::string lists[2];
    for (std::string& list : lists) {
      list.resize(random() % 12);
      for (char& letter : list) letter = static_cast<char>('A' + random() % 3);
    }
    const auto& [live, asked] = lists;
    if (live == asked) continue;
    const Sides sides = sides_of(live, asked);
    ASSERT_EQ(sides.live, live) << asked;
    ASSERT_EQ(sides.asked, asked) << live;
    ASSERT_EQ(sides.changes, testing::fewest_changes(live, asked)) << live << " " << asked;
  }
}

TEST(Diff, OfThousandsOfChangesIsWhole) {
  std::mt19937 random(1);
  std::string live, asked;
  for (int i = 0; i < 3000; ++i) {
    live += static_cast<char>('A' + random() % 26);
    asked += static_cast<char>('A' + random() % 26);
  }
  const Sides sides = sides_of(live, asked);
  EXPECT_EQ(sides.live, live);
  EXPECT_EQ(sides.asked, asked);
  EXPECT_LT(sides.changes, 5600U);  // of 6,000
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

// All that is said of a chain: "ipv4 nat ISTIO_INBOUND missing", and its lines; of others' rules, "*".
std::string text(const Difference& difference) {
  std::string all;
  for (const ChainDiff& c : difference.chains) {
    all += fmt::format("{} {} {}{}{}{}{}\n", names(c.families), name(c.table), c.name, c.missing ? " missing" : "",
                       c.extra ? " extra" : "", c.drops ? " drops" : "", c.dormant ? " dormant" : "");
    for (const DiffLine& line : c.lines)
      all += fmt::format("  {}{}\n", " +-*"[static_cast<std::size_t>(line.kind)], iptables_words(line.rule));
  }
  for (const std::string& table : difference.tables) all += fmt::format("table {}\n", table);
  return all;
}

Rule rule_of(Families families, const char* chain_name, Target target) {
  return {families, Table::nat, chain_name, {}, std::move(target), {}, {}};
}

// To the chain that all traffic passes, from one that others use, too.
Ruleset small() {
  Ruleset asked;
  asked.rules = {rule_of(Families::both(), "OUTPUT", Jump{"ISTIO_OUTPUT"}),
                 rule_of(Families::both(), "ISTIO_OUTPUT", Verdict::return_),
                 rule_of(Family::ipv4, "ISTIO_OUTPUT", Redirect{15001})};
  return asked;
}

Live programmed_in(BackendKind kind, const Ruleset& ruleset) {
  FakeBackend backend;
  backend.live.backend = kind;
  backend.replace(backend.read(), ruleset);
  return backend.live;
}

TEST(Diff, IsOfEachFamilyWhereEachHasItsTables) {
  Live nothing;
  EXPECT_EQ(text(diff(nothing, small())),
            "ipv4 nat ISTIO_OUTPUT missing\n"
            "  +-A ISTIO_OUTPUT -j RETURN\n"
            "  +-A ISTIO_OUTPUT -j REDIRECT --to-ports 15001\n"
            "ipv4 nat OUTPUT\n"
            "  +-A OUTPUT -j ISTIO_OUTPUT\n"
            "ipv6 nat ISTIO_OUTPUT missing\n"
            "  +-A ISTIO_OUTPUT -j RETURN\n"
            "ipv6 nat OUTPUT\n"
            "  +-A OUTPUT -j ISTIO_OUTPUT\n");
  nothing.backend = BackendKind::nftables;
  EXPECT_EQ(text(diff(nothing, small())),
            "ipv4, ipv6 nat ISTIO_OUTPUT missing\n"
            "  +-A ISTIO_OUTPUT -j RETURN\n"
            "  +-A ISTIO_OUTPUT -j REDIRECT --to-ports 15001\n"
            "ipv4, ipv6 nat OUTPUT\n"
            "  +-A OUTPUT -j ISTIO_OUTPUT\n");
}

TEST(Diff, AChainOfOthersAloneIsNoDifference) {
  Live live = programmed(small());
  live.chains.push_back(
      {Family::ipv4, Table::nat, "KUBE-SERVICES", false, {{foreign("KUBE-SERVICES", Verdict::drop), {}, false}}});
  live.chains.push_back({Family::ipv4, Table::nat, "INPUT", false, {{foreign("INPUT", Verdict::drop), {}, false}}});
  EXPECT_EQ(text(diff(live, small())), "");
  EXPECT_TRUE(equal(live, small()));
}

// Removed before added; others' rules where they stand; a rule of the other family alone is none.
TEST(Diff, ShowsWhatStandsAroundAChange) {
  Live live = programmed(small());
  auto& output = chain(live, "OUTPUT").rules;
  output.insert(output.begin(), LiveRule{foreign("OUTPUT", NonTerminating{}), {}, false});
  output.push_back(LiveRule{foreign("OUTPUT", Verdict::drop), {}, false});
  auto& ours = chain(live, "ISTIO_OUTPUT").rules;
  ours[1].rule.target = Redirect{16001};
  ours.insert(ours.begin() + 1, LiveRule{foreign("ISTIO_OUTPUT", Verdict::accept), {}, false});
  ours.push_back(LiveRule{foreign("ISTIO_OUTPUT", Verdict::drop), {}, false});
  EXPECT_EQ(text(diff(live, small())),
            "ipv4 nat ISTIO_OUTPUT\n"
            "   -A ISTIO_OUTPUT -j RETURN\n"
            "  *-A ISTIO_OUTPUT -j ACCEPT\n"
            "  --A ISTIO_OUTPUT -j REDIRECT --to-ports 16001\n"
            "  +-A ISTIO_OUTPUT -j REDIRECT --to-ports 15001\n"
            "  *-A ISTIO_OUTPUT -j DROP\n");
}

TEST(Diff, ATableOfOursThatDropsOrSleepsIsNotAsAsked) {
  const Live as_asked = programmed_in(BackendKind::nftables, small());
  EXPECT_EQ(text(diff(as_asked, small())), "");
  for (const bool drops : {true, false}) {
    Live live = as_asked;
    for (LiveChain& c : live.chains) {
      c.ours = true;  // as all of our own table are
      if (drops && c.hook) c.policy = Verdict::drop;
      c.dormant = !drops && c.hook.has_value();
    }
    EXPECT_EQ(text(diff(live, small())), fmt::format("ipv4, ipv6 nat OUTPUT {}\n"
                                                     "   -A OUTPUT -j ISTIO_OUTPUT\n",
                                                     drops ? "drops" : "dormant"));
    EXPECT_FALSE(equal(live, small()));
  }
  // The policy of a chain that is not ours, and of one that others use, too, is theirs.
  Live of_others = as_asked;
  for (LiveChain& c : of_others.chains) c.policy = Verdict::drop;
  std::erase_if(of_others.chains, [](const LiveChain& c) { return c.ours; });
  EXPECT_THAT(text(diff(of_others, small())), Not(HasSubstr("drops")));
  Live of_iptables = programmed(small());
  for (LiveChain& c : of_iptables.chains) c.policy = Verdict::drop;
  EXPECT_TRUE(equal(of_iptables, small()));
}

TEST(Diff, AnEmptyTableOfOursGoesUnlessRulesAreAsked) {
  Live live;
  live.own_tables = {"inet sidetrack"};
  EXPECT_TRUE(diff(live, {}).empty()) << "those of iptables stay";
  EXPECT_TRUE(equal(live, {}));
  live = programmed_in(BackendKind::nftables, small());
  live.own_tables = {"inet sidetrack"};
  EXPECT_TRUE(equal(live, small()));
  EXPECT_TRUE(diff(live, small()).empty());
  live.chains.clear();
  EXPECT_FALSE(equal(live, {}));
  EXPECT_EQ(text(diff(live, {})), "table inet sidetrack\n");
}

TEST(Diff, WarnsOfEachRuleThatDecidesBeforeOursAndOfNoOther) {
  const std::vector<Target> deciding = {Verdict::accept, Verdict::drop, Jump{"KUBE-SERVICES"}, Redirect{1}, Tproxy{},
                                        Reject{},        Nat{},         UnknownTarget{"DSCP"}};
  const std::vector<Target> others = {Verdict::return_, NonTerminating{}, SetMark{},
                                      SetConnmark{},    Notrack{},        CtZone{}};
  Live live = programmed(small());
  auto& output = chain(live, "OUTPUT").rules;
  for (const auto* targets : {&deciding, &others}) {
    for (const Target& target : *targets) {
      output.insert(output.begin(), LiveRule{foreign("OUTPUT", target), {}, false});
      EXPECT_EQ(diff(live, small()).warnings.size(), targets == &deciding ? 1U : 0U) << iptables_words(output[0].rule);
      output.erase(output.begin());
    }
  }
  // In a chain without rules of ours, or in one of ours, it is not in the way.
  live.chains.push_back({Family::ipv4, Table::nat, "INPUT", false, {{foreign("INPUT", Verdict::drop), {}, false}}});
  auto& ours = chain(live, "ISTIO_OUTPUT").rules;
  ours.insert(ours.begin(), LiveRule{foreign("ISTIO_OUTPUT", Verdict::drop), {}, false});
  EXPECT_THAT(diff(live, small()).warnings, IsEmpty());
}

TEST(PodDiff, SaysTheFirstOfRulesRoutesAndObstacles) {
  Routing routing;
  routing.policy_rules = {fwmark_rule(Family::ipv4, 1337, 133)};
  PodDiff pod_diff;
  pod_diff.backends.resize(2);
  EXPECT_TRUE(pod_diff.equal());
  EXPECT_EQ(first_difference(pod_diff), "");
  pod_diff.obstacles.emplace_back();
  EXPECT_TRUE(pod_diff.equal());
  EXPECT_FALSE(pod_diff.as_requested());
  EXPECT_EQ(first_difference(pod_diff), text(pod_diff.obstacles.front()));
  pod_diff.extra = routing;
  EXPECT_FALSE(pod_diff.equal());
  EXPECT_EQ(first_difference(pod_diff), "not requested: ip rule add fwmark 1337 lookup 133");
  pod_diff.missing = routing;
  pod_diff.extra = {};
  EXPECT_FALSE(pod_diff.equal());
  EXPECT_EQ(first_difference(pod_diff), "missing: ip rule add fwmark 1337 lookup 133");
  pod_diff.backends[1].backend = BackendKind::nftables;
  pod_diff.backends[1].tables = {"inet sidetrack"};
  pod_diff.missing = {};
  EXPECT_FALSE(pod_diff.equal());
  EXPECT_EQ(first_difference(pod_diff), "nftables: not requested: table inet sidetrack");
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
