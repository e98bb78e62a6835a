// SPDX-License-Identifier: GPL-2.0-or-later
// That two sides are alike, found out from their chains, beside what following all packets finds out.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "render/show.h"
#include "space/regions.h"
#include "text/read_rules.h"
#include "unit/asking.h"
#include "unit/live_rules.h"
#include "unit/space/random_rules.h"
#include "walk/explain.h"

namespace sidetrack::space {
namespace {

using RuleWords = std::initializer_list<std::string_view>;

Side side_with(RuleWords rules) {
  return {assumed_pod(planned("-m NONE --ip-families ipv4")),
          {rules_of_others(BackendKind::iptables_nft, Family::ipv4, rules)}};
}

bool are_known_alike(RuleWords one, RuleWords other) {
  Regions regions(list_of(side_with(one), side_with(other)));
  const bool are_alike = regions.are_known_alike(0, 1);
  EXPECT_EQ(regions.followed(), 0U);
  EXPECT_EQ(are_alike, regions.are_known_alike(1, 0));
  return are_alike;
}

TEST(KnownAlike, RulesThatMakeNoDifferenceWhereTheyStand) {
  constexpr std::string_view redirects = "nat -A OUTPUT -p tcp -j REDIRECT --to-ports 15001";
  EXPECT_TRUE(are_known_alike({redirects}, {redirects}));
  EXPECT_TRUE(
      are_known_alike({redirects}, {"nat -A OUTPUT -p tcp --dport 443 -j REDIRECT --to-ports 15001", redirects}));
  EXPECT_TRUE(are_known_alike({redirects}, {redirects, "nat -A OUTPUT -p tcp --dport 443 -j REDIRECT --to-ports 9"}));
  EXPECT_TRUE(are_known_alike({redirects}, {redirects, "nat -A OUTPUT -j RETURN"}));
  EXPECT_TRUE(are_known_alike({"nat -A OUTPUT -m owner --uid-owner 5 -j RETURN", redirects},
                              {"nat -A OUTPUT -m owner --uid-owner 5 -j RETURN",
                               "nat -A OUTPUT -o eth0 -m owner --uid-owner 5 -j ACCEPT", redirects}));
  EXPECT_TRUE(are_known_alike({"filter -A OUTPUT -p tcp -j DROP"},
                              {"filter -A OUTPUT -p tcp -j ONE", "filter -A ONE -p tcp -j DROP"}));
  // The pod has no interface of that name. Such a rule may stand beside what asks for marks.
  constexpr std::string_view marks = "mangle -A PREROUTING -m mark --mark 7 -j DROP";
  EXPECT_TRUE(are_known_alike({marks}, {marks, "mangle -A PREROUTING -i net2 -p tcp -j DROP"}));
}

TEST(KnownAlike, NotRulesThatMayMakeADifference) {
  constexpr std::string_view redirects = "nat -A OUTPUT -p tcp -j REDIRECT --to-ports 15001";
  EXPECT_FALSE(are_known_alike({redirects}, {"nat -A OUTPUT -p tcp --dport 443 -j REDIRECT --to-ports 9", redirects}));
  EXPECT_FALSE(are_known_alike({redirects}, {"nat -A OUTPUT -p tcp --sport 40000 -j RETURN", redirects}));
  EXPECT_FALSE(are_known_alike({redirects}, {"nat -A OUTPUT -o eth0 -p tcp -j RETURN", redirects}));
  EXPECT_FALSE(are_known_alike({redirects}, {"nat -A OUTPUT -m owner --gid-owner 5 -j RETURN", redirects}));
  EXPECT_FALSE(are_known_alike({redirects}, {"nat -A OUTPUT -s 10.0.0.1 -p tcp -j RETURN", redirects}));
  EXPECT_FALSE(are_known_alike({redirects}, {"nat -A PREROUTING -p tcp -j REDIRECT --to-ports 15001", redirects}));
  // The mark may be asked for later.
  EXPECT_FALSE(are_known_alike({redirects}, {"mangle -A OUTPUT -j MARK --set-xmark 0x1/0xffffffff", redirects}));
  // Another listener than that of the rule: its name is another one, too.
  EXPECT_FALSE(are_known_alike({redirects}, {"nat -A OUTPUT -p tcp -j REDIRECT --to-ports 15006"}));
  // Behind what is not understood.
  for (const std::string_view unknown : {"filter -A OUTPUT -j CUSTOM --anything", "filter -A OUTPUT -m bpf -j DROP"})
    EXPECT_FALSE(are_known_alike({unknown}, {unknown, "filter -A OUTPUT -p tcp -j DROP"}));
  constexpr std::string_view marks = "mangle -A PREROUTING -m mark --mark 7 -j DROP";
  EXPECT_FALSE(are_known_alike({marks}, {marks, "mangle -A PREROUTING -i eth0 -p tcp -j DROP"}));
  EXPECT_FALSE(are_known_alike({marks}, {marks, "mangle -A PREROUTING ! -i net2 -p tcp -j DROP"}));
  // Where the policy drops, ACCEPT and RETURN differ.
  Side accepts = side_with({"filter -A OUTPUT -p tcp -j ACCEPT"});
  Side returns = side_with({"filter -A OUTPUT -p tcp -j RETURN"});
  for (Side* side : {&accepts, &returns}) side->live.front().chains.front().policy = Verdict::drop;
  Regions regions(list_of(accepts, returns));
  EXPECT_FALSE(regions.are_known_alike(0, 1));
  // A chain that both base chains jump to, and that differs.
  EXPECT_FALSE(are_known_alike({"filter -A OUTPUT -p tcp -j DROP", "filter -A OUTPUT -j ONE", "filter -A INPUT -j ONE",
                                "filter -A ONE -j RETURN"},
                               {"filter -A OUTPUT -p tcp -j DROP", "filter -A OUTPUT -j ONE", "filter -A INPUT -j ONE",
                                "filter -A ONE -p tcp -j DROP"}));
}

// What the parts of one rule of nf_tables ask is asked once: the second one drops what the first one marks. JSON says
// which are parts by their number.
TEST(KnownAlike, NotRulesThatArePartsOfOneOnTheOtherSide) {
  const Side rules = side_with({"mangle -A OUTPUT -m mark --mark 0x1/0x1 -j MARK --set-xmark 0x0/0x1",
                                "mangle -A OUTPUT -m mark --mark 0x1/0x1 -j DROP"});
  Side parts = rules;
  for (LiveRule& part : parts.live.front().chains.front().rules) part.handle = 7;
  EXPECT_FALSE(treat_alike(rules.live.front().chains.front(), parts.live.front().chains.front()));
  const RulesText text{"show.json", rules_json(parts.live, {})};
  Side read = read_sides(text, text).first;
  read.pod = parts.pod;
  Regions regions(list_of(parts, rules, read));
  EXPECT_FALSE(regions.are_known_alike(0, 1));
  EXPECT_TRUE(regions.are_known_alike(0, 2));
  Box marked = regions.ordinary(parts.pod, Direction::out, Family::ipv4);
  marked[index(Field::mark)] = regions.sets().single(regions.universe().mark_class(1));
  const Point point = regions.example(marked);
  EXPECT_EQ(regions.decision(regions.at(0, point)).ending.kind, Outcome::Kind::dropped);
  EXPECT_EQ(regions.decision(regions.at(1, point)).ending.kind, Outcome::Kind::leaves);
  EXPECT_EQ(regions.decision(regions.at(2, point)).ending.kind, Outcome::Kind::dropped);
}

// One side, and the same with a rule copied to another place of its chain, or without one.
std::vector<Side> before_and_after_an_edit(Random& random) {
  static const char* const few[] = {"-i * -b *",     "-i 10.0.0.0/8 -x 10.1.0.0/16",  "-q 443 -o 22",
                                    "-b 80 -d 8080", "-m TPROXY -b * --drop-invalid", "--redirect-dns -o 22 -u 1337"};
  Side one{assumed_pod(planned("--ip-families ipv4")),
           {as_live(planned(fmt::format("{} --ip-families ipv4", random.of(few))).ruleset, BackendKind::iptables_nft)}};
  if (random.one_in(2)) add_others(random, one.live.front());
  Side other = one;
  std::vector<LiveChain>& chains = other.live.front().chains;
  std::erase_if(chains, [](const LiveChain& chain) { return chain.rules.empty(); });
  std::vector<LiveRule>& rules = chains[random.below(chains.size())].rules;
  const auto place = [&] { return rules.begin() + static_cast<std::ptrdiff_t>(random.below(rules.size())); };
  if (random.one_in(2)) {
    const LiveRule copied = *place();
    rules.insert(place(), copied);
  } else {
    rules.erase(place());  // perhaps the only one of a chain
  }
  if (random.one_in(2)) std::swap(one, other);
  return list_of(std::move(one), std::move(other));
}

TEST(KnownAlike, OnlyWhereAllPacketsEndAlike) {
  unsigned alike = 0;
  unsigned differing = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    Random random(seed);
    SCOPED_TRACE(seed);
    Regions regions(before_and_after_an_edit(random));
    if (!regions.are_known_alike(0, 1)) {
      ++differing;
      continue;
    }
    ++alike;
    const auto ends_alike = [&](Leaf a, Leaf b) {
      const bool is_unknown = a != no_such_packet && regions.decision(a).ending.kind == Outcome::Kind::unknown;
      return is_unknown || regions.end_alike(a, b) ? Diagrams::yes : Diagrams::no;
    };
    const Regions::Node all =
        regions.diagrams().combined(regions.of(0, Scope::ordinary), regions.of(1, Scope::ordinary), ends_alike);
    EXPECT_EQ(all, Diagrams::whole(Diagrams::yes));
  }
  EXPECT_GT(alike, 20U);
  EXPECT_GT(differing, 20U);
}

// Packets of the second side are followed only where they meet what differs: they end as if all were.
TEST(MayDiffer, AllPacketsThatEndOtherwise) {
  unsigned fewer = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    Random random(seed);
    SCOPED_TRACE(seed);
    const std::vector<Side> sides = before_and_after_an_edit(random);
    const Scope scope = random.one_in(4) ? Scope::everything : Scope::connections;
    Regions both(sides);
    static_cast<void>(both.of(0, scope));
    const std::size_t of_first = both.followed();
    const Regions::Node root = both.of(1, scope);
    if (both.followed() - of_first < of_first / 2) ++fewer;
    Regions alone(list_of(sides[1], sides[0]));
    const auto ending = [](const Regions& regions, Leaf leaf) {
      return leaf == no_such_packet ? Ending{} : regions.decision(leaf).ending;
    };
    const auto expect_same = [&](const Point& point, Leaf paired, Leaf followed) {
      ASSERT_EQ(paired == no_such_packet, followed == no_such_packet);
      const Ending expected = ending(alone, followed);
      const Ending found = ending(both, paired);
      // Whose socket it is may be unknown in one order of rules, and not matter in another.
      if (expected.kind == Outcome::Kind::unknown && found.kind == Outcome::Kind::unknown) return;
      EXPECT_EQ(found, expected) << explain_words(both.universe().packet(point)) << "\n"
                                 << ending_text(found) << "\n"
                                 << ending_text(expected);
    };
    both.for_each(root, [&](const Box& box, const Box&, Leaf leaf) {
      if (::testing::Test::HasFailure()) return;
      const Point point = both.example(box);
      expect_same(point, leaf, leaf == no_such_packet ? leaf : alone.at(0, point));
    });
    alone.for_each(alone.of(0, scope), [&](const Box& box, const Box&, Leaf leaf) {
      if (::testing::Test::HasFailure()) return;
      const Point point = alone.example(box);
      expect_same(point, both.diagrams().at(root, point), leaf);
    });
  }
  EXPECT_GT(fewer, 15U);
}

}  // namespace
}  // namespace sidetrack::space
