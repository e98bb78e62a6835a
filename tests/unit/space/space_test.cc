// SPDX-License-Identifier: GPL-2.0-or-later
// All packets at once, compared with explain() for one packet at a time; and the regions with themselves: disjoint,
// complete. Few random rules here; SIDETRACK_SPACE_SETS
// is how many sets of them there are to be, SIDETRACK_SPACE_FIRST the number of the first one.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "model/error.h"
#include "render/effect.h"
#include "render/json_parts.h"
#include "render/map.h"
#include "rule/iptables.h"
#include "space/regions.h"
#include "support/amount.h"
#include "text/read_rule.h"
#include "text/read_rules.h"
#include "unit/asking.h"
#include "unit/live_rules.h"
#include "unit/space/map_pieces.h"
#include "unit/space/random_rules.h"
#include "walk/hook_calls.h"
#include "walk/observer.h"

namespace sidetrack::space {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Side random_side(Random& random, std::string& what) {
  const std::string options = random_options(random);
  const Plan plan = planned(options);
  const BackendKind backend = random.of(all_backends);
  Side side{assumed_pod(plan), {as_live(plan.ruleset, backend)}};
  if (random.one_in(2)) {
    side.live.push_back({});
    side.live.back().backend =
        backend == BackendKind::iptables_nft ? BackendKind::iptables_legacy : BackendKind::iptables_nft;
    add_others(random, side.live.back());
  }
  if (random.one_in(3)) add_settings(random, side.pod);
  if (random.one_in(3)) {  // several next hops
    assume_interface(side.pod, "net1");
    side.pod.routes.front().other_devices = {"net1"};
  }
  what = fmt::format("{} {}", name(backend), options);
  return side;
}

// Every node: its edges have no value in common, and every value of the field is on one of them.
void expect_partition(Regions& regions, Regions::Node root) {
  std::set<std::pair<Regions::Node, Family>> seen;
  const std::function<void(Regions::Node, Family)> walk = [&](Regions::Node node, Family family) {
    if (Diagrams::is_leaf(node)) {
      EXPECT_NE(Diagrams::leaf(node), uncovered);
      return;
    }
    if (!seen.insert({node, family}).second) return;
    const std::size_t level = regions.diagrams().level(node);
    EXPECT_GE(regions.diagrams().edges(node).size(), 2U);
    Sets::Id all = Sets::empty;
    for (const auto& edge : regions.diagrams().edges(node)) {
      EXPECT_EQ(regions.sets().intersection(all, edge.values), Sets::empty);
      all = regions.sets().set_union(all, edge.values);
      const bool is_family = level == index(Field::family);
      if (is_family && regions.sets().contains(edge.values, 0)) walk(edge.to, Family::ipv4);
      if (is_family && regions.sets().contains(edge.values, 1)) walk(edge.to, Family::ipv6);
      if (!is_family) walk(edge.to, family);
    }
    EXPECT_EQ(all, regions.sets().of({regions.universe().domain(static_cast<Field>(level), family)}));
  };
  walk(root, Family::ipv4);
}

bool agrees(const Ending& ending, const Outcome& outcome) {
  // Whether it was translated to where it goes anyway makes no difference to explain.
  const bool goes_there_anyway = outcome.original && *outcome.original == outcome.at;
  if (ending.kind == Outcome::Kind::unknown && goes_there_anyway) return true;
  if (ending.kind != outcome.kind) return false;
  switch (outcome.kind) {
    case Outcome::Kind::lands:
    case Outcome::Kind::leaves:
      return ending.answers == outcome.answers && ending.translated == outcome.original.has_value() &&
             (!ending.translated ||
              (ending.to.value_or(outcome.at.address) == outcome.at.address &&
               ending.port.value_or(outcome.at.port.value_or(0)) == outcome.at.port.value_or(0))) &&
             ending.transparent == outcome.transparent && ending.transparent_port == outcome.transparent_port &&
             ending.interface == ways_out(outcome);
    case Outcome::Kind::forwarded:
      return ending.answers == outcome.answers && ending.interface == ways_out(outcome);
    case Outcome::Kind::dropped:
    case Outcome::Kind::unroutable:
    case Outcome::Kind::unknown:
      return true;
  }
  return false;
}

// "ISTIO_INBOUND 2: -A ISTIO_INBOUND …"; nothing: no rule decides.
std::string rule_of_region(Regions& regions, Leaf leaf, const Point& point) {
  const Step* step = regions.decision(leaf).step;
  if (step == nullptr || step->live == nullptr) return "";
  const LiveRule rule = regions.deciding_rule(0, *step, point);
  return fmt::format("{} {}: {}", step->chain, rule.number, iptables_words(rule.rule));
}
std::string deciding(const Trace& trace) {
  if (trace.decisive.empty()) return "";
  const Step& step = trace.steps[trace.decisive.back()];
  return step.live == nullptr ? "" : fmt::format("{} {}: {}", step.chain, step.number, iptables_words(step.live->rule));
}

::testing::AssertionResult ends_as_explained(Regions& regions, Regions::Node root, const Side& side,
                                             const Point& point) {
  const Leaf leaf = regions.diagrams().at(root, point);
  if (leaf == no_such_packet) return ::testing::AssertionSuccess();
  const Packet packet = regions.universe().packet(point);
  const Trace trace = explain(packet, side.pod, side.live);
  const Ending& ending = regions.decision(leaf).ending;
  if (ending.kind == Outcome::Kind::unknown && !regions.universe().marks_known) return ::testing::AssertionSuccess();
  if (!agrees(ending, trace.outcome)) {
    return ::testing::AssertionFailure() << explain_words(packet) << "\n  region:  " << ending_text(ending)
                                         << "\n  explain: " << sentence(trace.outcome);
  }
  const std::string by = rule_of_region(regions, leaf, point);
  const std::string decides = deciding(trace);
  if (ending.kind == Outcome::Kind::unknown || by == decides) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << explain_words(packet) << "\n  region:  by " << by << "\n  explain: by "
                                       << decides;
}

Point random_point(Random& random, Regions& regions, const Box& box) {
  Point point{};
  for (std::size_t i = 0; i < field_count; ++i) point[i] = random.in(regions.sets().intervals(box[i]));
  return point;
}

// A side, its regions, and packets of each: some anywhere in it, some at its edges.
void check(Side side, Random& random, std::size_t packets) {
  const Side copy = side;
  std::vector<Side> sides;
  sides.push_back(std::move(side));
  Regions regions(std::move(sides));
  const Regions::Node root = regions.of(0);
  expect_partition(regions, root);
  std::vector<Box> boxes;
  regions.for_each(root, [&](const Box& box, const Box&, Leaf leaf) {
    if (leaf != no_such_packet) boxes.push_back(box);
  });
  ASSERT_FALSE(boxes.empty());
  for (std::size_t i = 0; i < packets; ++i) {
    const Box& box = boxes[random.below(boxes.size())];
    Point point = random_point(random, regions, box);
    // One field at the edge of one of its intervals, or just beyond.
    const std::size_t field = random.below(field_count);
    const std::span<const Interval> edges = regions.sets().intervals(box[field]);
    const Interval& edge = edges[random.below(edges.size())];
    const Family family = point[index(Field::family)] == 0 ? Family::ipv4 : Family::ipv6;
    const Interval domain = regions.universe().domain(static_cast<Field>(field), family);
    const Value ends[] = {edge.first, edge.last, edge.first == domain.first ? domain.first : edge.first - 1,
                          edge.last == domain.last ? domain.last : edge.last + 1};
    if (static_cast<Field>(field) > Field::family && random.one_in(2)) point[field] = random.of(ends);
    ASSERT_TRUE(ends_as_explained(regions, root, copy, point));
    // For the same reason as if it had been followed itself.
    ASSERT_EQ(regions.diagrams().at(root, point), regions.at(0, point));
  }
}

TEST(Space, EveryPacketOfRandomOptionsEndsAsExplainSays) {
  const unsigned first = amount("SIDETRACK_SPACE_FIRST", 0);
  const unsigned sets = amount("SIDETRACK_SPACE_SETS", 2);
  std::vector<unsigned> seeds{1006};  // a range of ports to which one in it is translated: it keeps its address
  for (unsigned seed = first; seed < first + sets; ++seed) seeds.push_back(seed);
  for (const unsigned seed : seeds) {
    Random random(seed);
    std::string what;
    Side side = random_side(random, what);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, what));
    check(std::move(side), random, 300);
    if (::testing::Test::HasFailure()) return;
  }
}

// So many values that diagrams and boxes are worked out many at once.
Side side_with_many_rules(Random& random) {
  const Plan plan = planned("-i * -b * --ip-families ipv4");
  Side side{assumed_pod(plan), {as_live(plan.ruleset, BackendKind::iptables_legacy), {}}};
  side.live.back().backend = BackendKind::iptables_nft;
  const auto number = [&](std::uint64_t first, std::uint64_t last) {
    return static_cast<std::uint16_t>(first + random.below(last - first + 1));
  };
  std::vector<std::pair<std::vector<Match>, Target>> rules;
  for (int i = 0; i < 24; ++i) {
    std::vector<Match> matches;
    const std::string range = fmt::format("10.{}.{}.{}/{}", number(0, 9), number(0, 9), number(0, 255),
                                          random.one_in(4) ? number(12, 24) : number(28, 32));
    matches.push_back(AddressMatch{End::destination, {*AddressRange::parse(range)}, random.one_in(20)});
    const std::uint16_t port = number(1000, 1100);
    if (!random.one_in(4)) {
      matches.push_back(ProtocolMatch{random.one_in(3) ? Protocol::udp : Protocol::tcp, false});
      matches.push_back(PortMatch{End::destination, {{port, number(port, port + 3)}}, random.one_in(20)});
    }
    rules.emplace_back(std::move(matches), random.one_in(2) ? Verdict::drop : Verdict::accept);
  }
  side.live.back().chains.push_back(chain(Family::ipv4, Table::filter, "OUTPUT", false, rules));
  return side;
}

TEST(Space, EveryPacketOfManyRulesEndsAsExplainSays) {
  const unsigned first = amount("SIDETRACK_SPACE_FIRST", 0);
  const unsigned sets = amount("SIDETRACK_SPACE_SETS", 1);
  for (unsigned seed = first; seed < first + sets; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    check(side_with_many_rules(random), random, 300);
    if (::testing::Test::HasFailure()) return;
  }
}

Side side_of(const std::string& options, BackendKind backend) {
  const Plan plan = planned(options);
  return {assumed_pod(plan), {as_live(plan.ruleset, backend)}};
}

// Chains that jump to others, go to them, come back, and mark packets before others ask for the mark.
Side side_with_jumps(Random& random) {
  const Plan plan = planned(random.one_in(2) ? "-i * -b * --ip-families ipv4" : "-m TPROXY -b 80 --ip-families ipv4");
  Side side{assumed_pod(plan), {as_live(plan.ruleset, BackendKind::iptables_legacy), {}}};
  side.live.back().backend = BackendKind::iptables_nft;
  static constexpr Table tables[] = {Table::mangle, Table::filter, Table::security};
  const Table table = random.of(tables);
  static const char* const names[] = {"OUTPUT", "ONE", "TWO", "THREE"};  // each leads to those after it alone
  for (std::size_t i = 0; i < std::size(names); ++i) {
    LiveChain made = chain(Family::ipv4, table, names[i], false, {});
    for (std::uint64_t j = 2 + random.below(3); j-- > 0;) {
      LiveRule rule = random_rule(random, Family::ipv4, table, names[i]);
      if (i + 1 < std::size(names) && random.one_in(2))
        rule.rule.target = Jump{names[i + 1 + random.below(std::size(names) - i - 1)], random.one_in(4)};
      if (random.one_in(5)) rule.rule.target = SetMark{0x4000, random.one_in(2) ? 0x4000 : 0xffffffff};
      if (random.one_in(3)) rule.rule.matches.push_back(UnknownMatch{fmt::format("-m bpf {}", random.below(4))});
      made.rules.push_back(rule);
      // More of the same rule of nf_tables, in which nothing follows a jump.
      if (!std::holds_alternative<Jump>(rule.rule.target) && random.one_in(4)) {
        made.rules.back().handle = static_cast<std::uint64_t>(made.rules.size());
        LiveRule more = made.rules.back();
        more.rule.matches.push_back(random_match(random));
        more.rule.target = Verdict::drop;
        made.rules.push_back(std::move(more));
      }
    }
    side.live.back().chains.push_back(std::move(made));
    if (i > 0) side.live.back().chains.back().hook.reset();
  }
  return side;
}

TEST(Space, EveryPacketOfRulesThatJumpEndsAsExplainSays) {
  const unsigned first = amount("SIDETRACK_SPACE_FIRST", 0);
  const unsigned sets = amount("SIDETRACK_SPACE_SETS", 2);
  for (unsigned seed = first; seed < first + sets; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Side side = side_with_jumps(random);
    std::string rules;
    for (const LiveChain& chain : side.live.back().chains) {
      for (const LiveRule& rule : chain.rules) rules += iptables_words(rule.rule) + "\n";
    }
    SCOPED_TRACE(rules);
    check(std::move(side), random, 200);
    if (::testing::Test::HasFailure()) return;
  }
}

// Paths through chains say the same as asking one rule after the other, also where it is unknown whether rules match.
TEST(Space, EveryPacketOfRulesThatJumpEndsAsRuleByRule) {
  constexpr std::size_t most = 300;  // packets that are followed: rules of more take long
  const unsigned first = amount("SIDETRACK_SPACE_FIRST", 0);
  const unsigned sets = amount("SIDETRACK_SPACE_SETS", 20);
  std::size_t compared = 0;
  for (unsigned seed = first; seed < first + sets; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Side side = side_with_jumps(random);
    Regions regions({side}, most);
    const Box box = regions.ordinary(side.pod, Direction::out, Family::ipv4);
    Regions::Node root;
    try {
      root = regions.of(0, Scope::ordinary);
    } catch (const TooManyRegions&) {
      continue;
    }
    ++compared;
    FamilyRules rules(side.live, Family::ipv4);
    for (int i = 0; i < 50; ++i) {
      const Point point = random_point(random, regions, box);
      const Packet packet = regions.universe().packet(point);
      NullObserver asks_all;
      Ending expected = ending_of(possibilities(packet, side.pod, rules, asks_all));
      Ending ending = regions.decision(regions.diagrams().at(root, point)).ending;
      // A rule that has no effect, whether it matches or not, is no reason.
      if (std::ranges::includes(expected.unknowns, ending.unknowns)) ending.unknowns = expected.unknowns;
      // Later packets are asked about if any rule of the path tells them apart, met or not.
      for (Ending* all : {&expected, &ending}) {
        for (Ending& each : all->either) each.answers = Outcome::Answers::unknown;
      }
      ASSERT_EQ(ending, expected) << explain_words(packet) << "\n  region:       " << ending_text(ending)
                                  << "\n  rule by rule: " << ending_text(expected);
    }
  }
  EXPECT_GE(compared, sets / 3);
}

// One packet for each rule and state, and sets that are not kept for each packet: hundreds of MiB once.
TEST(Space, ManyRulesThatHaveNothingInCommonTakeLittle) {
  Side side = side_of("-m NONE --ip-families ipv4", BackendKind::iptables_legacy);
  std::vector<std::pair<std::vector<Match>, Target>> rules;
  for (unsigned i = 0; i < 500; ++i) {
    const auto port = static_cast<std::uint16_t>(1000 + 7 * i);
    rules.emplace_back(
        std::vector<Match>{
            AddressMatch{End::destination, {*AddressRange::parse(fmt::format("20.0.{}.{}", i / 250, i % 250))}, false},
            PortMatch{End::destination, {{port, port}}, false}},
        Verdict::drop);
  }
  side.live.front().chains.push_back(chain(Family::ipv4, Table::filter, "OUTPUT", false, rules));
  Regions regions({std::move(side)});
  static_cast<void>(regions.of(0, Scope::ordinary));
  EXPECT_LT(regions.followed(), 4U * rules.size());
  EXPECT_LT(regions.sets().bytes() + regions.diagrams().bytes(), 16U << 20);
}

TEST(Space, EveryPacketOfTheScenariosEndsAsExplainSays) {
  Random random(1);
  for (const char* options :
       {"-i * -b * -d 15090,15021,15020", "-m TPROXY -i * -b * -d 15021", "-m NONE",
        "-i 10.0.0.0/8,fd00::/8 -x 10.1.0.0/16 -o 22 -q 80 -b 8080 -c net2 -u 1337,1338 -g 5 --drop-invalid"}) {
    SCOPED_TRACE(options);
    const Plan plan = planned(options);
    check({assumed_pod(plan), {as_live(plan.ruleset, random.of(all_backends))}}, random, 50);
  }
}

// Small ones, each of its own: rules of others and settings, and few of ours.
class SpaceOfOthers : public ::testing::TestWithParam<unsigned> {};

TEST_P(SpaceOfOthers, EveryPacketEndsAsExplainSays) {
  static const char* const few[] = {"-m NONE", "-b 80", "-m TPROXY -b 80", "-q 443"};
  Random random(GetParam());
  const Plan plan = planned(fmt::format("{} --ip-families ipv4", random.of(few)));
  const BackendKind backend = random.of(all_backends);
  Side side{assumed_pod(plan), {as_live(plan.ruleset, backend), {}}};
  side.live.back().backend =
      backend == BackendKind::iptables_nft ? BackendKind::iptables_legacy : BackendKind::iptables_nft;
  add_others(random, side.live.back());
  if (GetParam() % 2 == 0) add_settings(random, side.pod);
  check(std::move(side), random, 150);
}

INSTANTIATE_TEST_SUITE_P(, SpaceOfOthers, ::testing::Values(1U, 2U, 3U, 4U, 6U, 7U, 8U, 9U, 11U, 12U, 13U, 15U));

// ---- Rules of others that were answered wrongly once

void push(Side& side, Table table, const char* name, std::vector<Match> matches, Target target) {
  side.live.front().chains.push_back(
      chain(Family::ipv4, table, name, false, {{std::move(matches), std::move(target)}}));
}

// A mark that is kept for the connection, and decides whether its source is translated: its answers have the packet's
// own source again.
TEST(Space, TranslatedSourcesOfMarkedConnections) {
  for (const Target& kept : {Target(SetConnmark{5, ~0U}), Target(Connmark::save)}) {
    Side side = side_of("-m NONE --ip-families ipv4", BackendKind::iptables_legacy);
    push(side, Table::mangle, "OUTPUT", {}, kept);
    push(side, Table::nat, "POSTROUTING", {MarkMatch{5, ~0U, false}}, Nat{End::source, {}, {}, "-j MASQUERADE"});
    Regions regions({side});
    static_cast<void>(regions.of(0));
    EXPECT_LT(regions.followed(), 2000U);
    Random random(1);
    check(std::move(side), random, 300);
  }
}

// Ways that lead to one port, which is the packet's own by one of them: to follow later packets, the state of either is
// looked for.
TEST(Space, LaterPacketsOfOnesThatMayHaveBeenTranslated) {
  Side side = side_of("-m NONE --ip-families ipv4", BackendKind::iptables_legacy);
  push(side, Table::mangle, "OUTPUT", {UnknownMatch{"-m bpf"}}, SetConnmark{2, 3});
  LiveChain translates = chain(Family::ipv4, Table::nat, "OUTPUT", false,
                               {{{UnknownMatch{"-m statistic"}}, Redirect{80}}, {{}, Redirect{}}});
  side.live.front().chains.push_back(std::move(translates));
  Random random(1);
  check(std::move(side), random, 500);
}

// An answer that may meet a rule may have marked the connection of a later packet, or not: what becomes of that is
// known where the rule does not mark it.
TEST(Space, ConnectionsThatAnAnswerMayHaveMarked) {
  struct Case {
    Target target;
    bool marks;
  };
  for (const Case& each : {Case{SetConnmark{5, ~0U}, true}, Case{Verdict::accept, false}}) {
    Side side = side_of("-m NONE --ip-families ipv4", BackendKind::iptables_legacy);
    push(side, Table::mangle, "OUTPUT", {UnknownMatch{"-m bpf"}}, each.target);
    push(side, Table::mangle, "PREROUTING", {PortMatch{End::destination, {{81, 81}}, false}}, SetConnmark{6, ~0U});
    push(side, Table::filter, "INPUT", {ConnmarkMatch{5, ~0U, false}}, Verdict::drop);
    Regions regions({side});
    const Regions::Node root = regions.of(0);
    const auto ending_at = [&](const Box& box) {
      return regions.decision(regions.diagrams().at(root, regions.example(box))).ending;
    };
    Box later = regions.ordinary(side.pod, Direction::in, Family::ipv4);
    later[index(Field::state)] = regions.sets().single(1);  // of connection_states
    EXPECT_EQ(ending_at(later).kind, each.marks ? Outcome::Kind::unknown : Outcome::Kind::lands);
    Random random(1);
    check(std::move(side), random, 300);
  }
}

// Packets are alike whose connections have marks that nobody asks for, though their answers may meet a rule that sets
// it.
TEST(Space, MarksOfConnectionsThatNobodyAsksFor) {
  Side side = side_of("-m NONE --ip-families ipv4", BackendKind::iptables_legacy);
  push(side, Table::raw, "OUTPUT", {ProtocolMatch{Protocol::tcp, false}, TcpFlagsMatch{0x17, 0x02, false}}, Notrack{});
  push(side, Table::filter, "OUTPUT", {OwnerMatch{OwnerKind::uid, {{1000, 1000}}, false}}, SetConnmark{2, ~0U});
  Random random(1);
  check(std::move(side), random, 300);
}

// A rule of nf_tables that reads the mark of a connection ends where there is none; those of iptables go on.
TEST(Space, RulesThatReadTheMarkOfNoConnection) {
  for (const BackendKind backend : all_backends) {
    for (const Target& reads : {Target(Connmark::restore), Target(SetConnmark{1, 1}), Target(SetConnmark{1, ~0U})}) {
      Side side = side_of("-m NONE --ip-families ipv4", backend);
      push(side, Table::raw, "OUTPUT", {ProtocolMatch{Protocol::udp, false}}, Notrack{});
      push(side, Table::filter, "OUTPUT", {}, reads);
      std::vector<LiveRule>& parts = side.live.front().chains.back().rules;
      parts.push_back(parts.front());
      parts.back().rule.target = Verdict::drop;
      for (LiveRule& part : parts) part.handle = 1;
      Regions regions({side});
      Box udp = regions.ordinary(side.pod, Direction::out, Family::ipv4);
      udp[index(Field::protocol)] = regions.sets().single(space::udp);
      const bool ends = backend == BackendKind::nftables && reads != Target(SetConnmark{1, ~0U});
      EXPECT_EQ(regions.decision(regions.at(0, regions.example(udp))).ending.kind,
                ends ? Outcome::Kind::leaves : Outcome::Kind::dropped);
      Random random(1);
      check(std::move(side), random, 50);
    }
  }
}

// Those of a source that it has already leave untouched.
TEST(Space, NewSourcesAreSaid) {
  Side side = side_of("-m NONE --ip-families ipv4", BackendKind::iptables_legacy);
  push(side, Table::nat, "POSTROUTING", {PortMatch{End::destination, {{80, 80}}}},
       Nat{End::source, AddressRange::parse("192.0.2.2"), {}, "-j SNAT --to-source 192.0.2.2"});
  push(side, Table::nat, "POSTROUTING", {PortMatch{End::destination, {{443, 443}}}},
       Nat{End::source, AddressRange::parse("192.0.2.77"), {}, "-j SNAT --to-source 192.0.2.77"});
  Regions regions({side});
  std::set<std::string> endings;
  regions.for_each(regions.of(0), [&](const Box&, const Box&, Leaf leaf) {
    if (leaf != no_such_packet) endings.insert(ending_text(regions.decision(leaf).ending));
  });
  EXPECT_THAT(endings, ::testing::Contains("leaves from 192.0.2.77, by eth0; whether replies arrive is unknown"));
  EXPECT_THAT(endings, ::testing::Contains("leaves untouched, by eth0"));
  Random random(1);
  check(std::move(side), random, 400);
}

// What is redirected, and leaves all the same, may have the new source or another.
TEST(Space, NewSourcesAreThoseOfEachPacket) {
  Side side = side_of("-q 443 --ip-families ipv4", BackendKind::iptables_legacy);
  push(side, Table::nat, "POSTROUTING", {},
       Nat{End::source, AddressRange::parse("192.0.2.2"), {}, "-j SNAT --to-source 192.0.2.2"});
  Random random(1);
  check(std::move(side), random, 100);
}

TEST(Space, RedirectedWithoutAPort) {
  Side side = side_of("-m NONE --ip-families ipv4", BackendKind::iptables_legacy);
  push(side, Table::nat, "PREROUTING", {}, Nat{End::destination, {}, {}, "-j REDIRECT"});
  Random random(1);
  check(std::move(side), random, 400);
}

TEST(Universe, NamesMarksApart) {
  Side side = side_of("-m NONE --ip-families ipv4", BackendKind::iptables_legacy);
  push(side, Table::filter, "OUTPUT", {MarkMatch{5, ~0U, false}}, Verdict::accept);
  push(side, Table::filter, "INPUT", {MarkMatch{1, 1, false}}, Verdict::drop);
  Regions regions({std::move(side)});
  const auto names = [&](std::initializer_list<std::uint32_t> marks) {
    Intervals classes;
    for (const std::uint32_t mark : marks) {
      const Value one = regions.universe().mark_class(mark);
      classes.push_back({one, one});
    }
    return fmt::format("{}", fmt::join(regions.universe().mark_words(normal(std::move(classes))), ", "));
  };
  EXPECT_EQ(names({5}), "0x5");
  EXPECT_EQ(names({1}), "0x1/0x1 but not 0x5");
  EXPECT_EQ(names({0}), "any but 0x1/0x1");
  EXPECT_EQ(names({1, 5}), "0x1/0x1");
  EXPECT_EQ(names({0, 1}), "any but 0x5");
  EXPECT_EQ(names({0, 5}), "0x5, any but 0x1/0x1");
}

// Of many classes few words, where few hold for all of them.
TEST(Universe, NamesBitsOfMarksInFewWords) {
  Side side = side_of("-m NONE --ip-families ipv4", BackendKind::iptables_legacy);
  std::vector<std::pair<std::vector<Match>, Target>> rules;
  for (std::uint32_t bit = 1; bit < 1U << 10; bit <<= 1) rules.push_back({{MarkMatch{bit, bit, false}}, Verdict::drop});
  side.live.front().chains.push_back(chain(Family::ipv4, Table::filter, "OUTPUT", false, rules));
  const Regions regions({std::move(side)});
  const Universe& universe = regions.universe();
  ASSERT_EQ(universe.marks.size(), 1024U);
  EXPECT_THAT(universe.mark_words(universe.marks_with({}, 4, 4)), ::testing::ElementsAre("0x4/0x4"));
  EXPECT_THAT(universe.mark_words(universe.marks_with({}, 0, 4)), ::testing::ElementsAre("any but 0x4/0x4"));
  EXPECT_THAT(universe.mark_words(universe.marks_with({}, 1, 5)), ::testing::ElementsAre("0x1/0x1 but not 0x4/0x4"));
}

TEST(Map, SaysWhichRouteCannotBeKnown) {
  Side side = side_of("-i * --ip-families ipv4", BackendKind::iptables_legacy);
  assume_interface(side.pod, "net1");
  PolicyRule by_uid;
  by_uid.priority = 100;
  by_uid.table = 77;
  by_uid.more = "uidrange";
  side.pod.rules.insert(side.pod.rules.begin() + 1, by_uid);
  side.pod.routes.push_back({*AddressRange::parse("0.0.0.0/0"), "net1", Route::Kind::unicast, 77});
  Regions regions({std::move(side)});
  EXPECT_THAT(map_text(regions, 0, {.families = Family::ipv4, .ways = {Direction::out}}),
              HasSubstr("unknown: the route by `ip rule 100: uidrange lookup 77`"));
}

// A port that the kernel chooses is one of the usual ports, of which some may be matched.
TEST(Map, SaysWhoseSourcePortItIs) {
  const auto of = [](PortMatch match) {
    Side side = side_of("-m NONE --ip-families ipv4", BackendKind::iptables_legacy);
    push(side, Table::filter, "OUTPUT", {match}, Verdict::drop);
    Regions regions({std::move(side)});
    return map_text(regions, 0, {.families = Family::ipv4, .ways = {Direction::out}});
  };
  EXPECT_THAT(of({End::source, {{53, 53}}}), HasSubstr("from port 53"));
  EXPECT_THAT(of({End::source, {{32768, 40000}}}), HasSubstr("from the usual ports"));
  EXPECT_THAT(of({End::source, {{32768, 40000}}, true}), HasSubstr("from the usual ports"));
}

// A socket that is connected to a link-local address is bound to its interface, also after it is redirected.
TEST(Space, TellsLinkLocalAddressesApart) {
  const Plan plan = planned("-m TPROXY -b * -i 10.0.0.0/8");
  Side side{assumed_pod(plan, {"net1"}), {as_live(plan.ruleset, BackendKind::iptables_legacy)}};
  std::vector<Address> own;
  for (const auto& [name, address] : {std::pair("eth0", "fe80::1"), {"net1", "fe80::2"}}) {
    own.push_back(*Address::parse(address));
    side.pod.interface(name)->addresses.push_back({own.back(), 64});
  }
  Regions regions({std::move(side)});
  const Regions::Node root = regions.of(0);
  for (const Address& to : own) {
    Box box = regions.everything(Direction::lo, Family::ipv6);
    box[index(Field::destination)] = regions.sets().single(value_of(to));
    box[index(Field::uid)] = regions.sets().single(1337);
    regions.diagrams().for_each(root, box, [&](const Box& part, Leaf leaf) {
      const Point point = regions.example(part);
      EXPECT_EQ(ending_text(regions.decision(leaf).ending), ending_text(regions.decision(regions.at(0, point)).ending))
          << explain_words(regions.universe().packet(point));
    });
  }
}

// Of several next hops a connection takes any: what ends alike by each is certain.
// connect() binds sockets of TCP to the interface of such a destination; those of UDP only if they connect.
TEST(Space, SocketsToLinkLocalAddressesAreBoundByTheirProtocol) {
  Random random(3);
  const Side side = side_of("-m NONE", BackendKind::iptables_nft);
  check({side.pod,
         {rules_of_others(BackendKind::iptables_nft, Family::ipv6,
                          {"mangle -A PREROUTING -j CONNMARK --save-mark", "nat -A OUTPUT -j REDIRECT"})}},
        random, 500);
}

TEST(Space, NothingPassesInterfacesWhereIPv6IsOff) {
  Random random(5);
  for (const char* name : {"lo", "eth0"}) {
    Side side = side_of("-i * -b * --dual-stack", BackendKind::nftables);
    side.pod.interface(name)->disable_ipv6 = true;
    check(side, random, 200);
    EXPECT_EQ(explain(packet_of(name == std::string("lo") ? "lo tcp [2001:db8::2]:80" : "in tcp [2001:db8::2]:80"),
                      side.pod, side.live)
                  .outcome.kind,
              Outcome::Kind::dropped);
  }
}

TEST(Map, FollowsEachNextHop) {
  const Plan plan = planned("-i 10.0.0.0/8 -b * --ip-families ipv4");
  Side side{assumed_pod(plan, {"net1"}),
            {as_live(plan.ruleset, BackendKind::nftables),
             rules_of_others(BackendKind::iptables_nft, Family::ipv4,
                             {"filter -A OUTPUT -o net1 -p tcp --dport 80 -j DROP"})}};
  side.pod.routes.front().other_devices = {"net1"};
  side.pod.routes.push_back({*AddressRange::parse("192.0.2.0/24"), "eth0"});
  EXPECT_EQ(explain(packet_of("out tcp 198.51.100.1:80"), side.pod, side.live).outcome.kind, Outcome::Kind::unknown);
  EXPECT_EQ(sentence(explain(packet_of("out tcp 198.51.100.1:81"), side.pod, side.live).outcome),
            "leaves the pod by eth0 or net1 to 198.51.100.1:81, untouched");
  Side not_by_net1{side.pod, {as_live(plan.ruleset, BackendKind::iptables_nft)}};
  for (LiveChain& chain : not_by_net1.live.front().chains) {
    if (chain.table != Table::nat || chain.name != "OUTPUT") continue;
    LiveRule accepting = chain.rules.front();
    accepting.rule.matches = {InterfaceMatch{InterfaceDirection::out, "net1", false}};
    accepting.rule.target = Verdict::accept;
    chain.rules.insert(chain.rules.begin(), accepting);
  }
  EXPECT_THAT(explain(packet_of("out tcp 10.0.0.1:81 --uid 7"), not_by_net1.pod, not_by_net1.live).outcome.why,
              HasSubstr("if that by net1: leaves the pod by net1 to 10.0.0.1:81, untouched"));
  Regions regions({std::move(side)});
  const std::string text = map_text(regions, 0, {.families = Family::ipv4, .ways = {Direction::out}});
  EXPECT_THAT(text, HasSubstr("-> unknown: the next hop by `ip route default dev eth0 table main` (dropped, or "
                              "leaves untouched, by eth0)\n"));
  // By a route with one hop.
  EXPECT_THAT(text, ::testing::ContainsRegex("  to 192\\.0\\.2\\.0/24 +-> leaves untouched, by eth0\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("  everything but what follows +-> leaves untouched, by eth0 or net1\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("to 10\\.0\\.0\\.0/8; sent by any uid but 1337; sent by any gid but 1337 +"
                                             "-> 127\\.0\\.0\\.1:15001 "));
}

// The kernel chooses the source with the hop.
TEST(Map, FollowsEachNextHopWithItsSource) {
  const Plan plan = planned("-m NONE --ip-families ipv4");
  Side side{assumed_pod(plan, {"net1"}),
            {rules_of_others(BackendKind::iptables_nft, Family::ipv4, {"filter -A OUTPUT -s 198.18.2.2 -j DROP"})}};
  side.pod.routes.front().other_devices = {"net1"};
  EXPECT_THAT(explain(packet_of("out tcp 198.51.100.1:80"), side.pod, side.live).outcome.why,
              HasSubstr("(if that by eth0: leaves the pod by eth0 to 198.51.100.1:80, untouched; if that by net1: "
                        "dropped: by rule 1 of filter OUTPUT)"));
  EXPECT_EQ(sentence(explain(packet_of("out tcp 198.51.100.1:80 --from 192.0.2.2"), side.pod, side.live).outcome),
            "leaves the pod by eth0 or net1 to 198.51.100.1:80, untouched");
  Regions regions({std::move(side)});
  EXPECT_THAT(map_text(regions, 0, {.families = Family::ipv4, .ways = {Direction::out}}),
              HasSubstr("(dropped, or leaves untouched, by eth0)"));
}

// Other hosts may send to it, and REDIRECT takes an address of the interface by which they come.
TEST(Map, OfAPodWithItsAddressOnLo) {
  Side side = side_of("-b * --ip-families ipv4", BackendKind::iptables_nft);
  const auto named = [&](const char* name) {
    return std::ranges::find(side.pod.interfaces, std::string_view(name), &Interface::name);
  };
  named("lo")->addresses.push_back(named("eth0")->addresses.front());
  named("eth0")->addresses.clear();
  Regions regions({std::move(side)});
  EXPECT_THAT(map_text(regions, 0, {.families = Family::ipv4, .ways = {Direction::in}}),
              ::testing::ContainsRegex("inbound tcp\n  everything but what follows +-> dropped  .-z 15006."));
}

// No address is never one of the pod: the kernel takes another one.
TEST(Map, WhereNoAddressIsWithinALocalRoute) {
  Side side = side_of("-i * --ip-families ipv4", BackendKind::iptables_nft);
  Route local{*AddressRange::parse("0.0.0.0/1"), "lo"};
  local.kind = Route::Kind::local;
  local.table = local_table;
  side.pod.routes.push_back(local);
  Random random(1);
  check(side, random, 200);
}

TEST(Map, AsJsonNamesAPolicyThatDecides) {
  Side side = side_of("-m NONE --ip-families ipv4", BackendKind::iptables_legacy);
  push(side, Table::filter, "OUTPUT", {ProtocolMatch{Protocol::tcp}}, Verdict::accept);
  for (LiveChain& chain : side.live.front().chains) {
    if (chain.name == "OUTPUT") chain.policy = Verdict::drop;
  }
  Regions regions({std::move(side)});
  const std::string json = test::map_json(regions, 0, {.families = Family::ipv4, .ways = {Direction::out}});
  EXPECT_THAT(json, HasSubstr(R"("policy": "drop")"));
}

// Piece by piece, with texts that are kept, as the whole document would be.
TEST(Map, AsJsonIsLaidOutAsOtherDocuments) {
  const Plan plan = planned("-i * -b * -x 10.99.0.0/16,10.1.0.0/16 -o 22,9001 -c net2");
  Regions regions({{assumed_pod(plan), {as_live(plan.ruleset, BackendKind::iptables_nft)}}});
  const std::string text = test::map_json(regions, 0, {.ways = {Direction::out, Direction::in}});
  const Json document = Json::parse(text);
  std::string expected;
  for (const Json& region : document.at("regions"))
    expected += (expected.empty() ? "{\"regions\": [\n  " : ",\n  ") + laid_out(region, 2);
  EXPECT_EQ(text, expected + "\n]}\n");
}

// Each field by its name, whatever order diagrams ask them in.
TEST(Map, NamesTheFieldsOfARegion) {
  const Plan plan = planned("-i * -b * -x 10.99.0.0/16 -o 22 --ip-families ipv4");
  Regions regions({{assumed_pod(plan), {as_live(plan.ruleset, BackendKind::nftables)}}});
  const auto json =
      nlohmann::json::parse(test::map_json(regions, 0, {.families = Family::ipv4, .ways = {Direction::out}}));
  std::set<std::string> seen;
  for (const auto& region : json.at("regions")) {
    for (const auto& [name, values] : region.at("packets").items()) {
      const std::string first = values.is_array() ? values.front().dump() : values.dump();
      const bool is_address = first.find('.') != std::string::npos;
      if (name == "source" || name == "destination") {
        seen.insert(name);
        EXPECT_TRUE(is_address || first == "\"kernel\"" || values.size() > 1) << name << ": " << values;
      } else {
        EXPECT_FALSE(is_address) << name << ": " << values;
      }
      const bool is_port = first == "22" || first == "\"22\"";
      EXPECT_EQ(is_port, is_port && name == "destination_port") << name << ": " << values;
    }
  }
  EXPECT_THAT(seen, ::testing::Contains("destination"));
}

// ---- What a person reads of it

std::string map_of(const char* options, MapOptions asked = {}) {
  const Plan plan = planned(options);
  std::vector<Side> sides{{assumed_pod(plan), {as_live(plan.ruleset, BackendKind::iptables_nft)}}};
  Regions regions(std::move(sides));
  return map_text(regions, 0, asked);
}

TEST(Map, IsDrawn) {
  const Plan plan = planned("-i * -b * -o 22,9001 --ip-families ipv4");
  Regions regions({{assumed_pod(plan), {as_live(plan.ruleset, BackendKind::nftables)}}});
  const MapOptions asked{.families = Family::ipv4, .ways = {Direction::out}};
  const std::string svg = map_svg(regions, 0, asked);
  for (const char* text : {"<svg xmlns=", ">outbound tcp<", ">to port 22, 9001<", ">(-o 22,9001)<",
                           ">127.0.0.1:15001 (Envoy outbound)<", "</svg>\n"})
    EXPECT_THAT(svg, HasSubstr(text));
  EXPECT_EQ(map_svg(regions, 0, asked), svg);
}

TEST(Map, SaysInALineWhatEachOptionLeavesOut) {
  EXPECT_EQ(map_of("-i * -b * -x 10.99.0.0/16 -o 22,9001 -d 15090 --ip-families ipv4",
                   {.families = Family::ipv4, .ways = {Direction::out, Direction::in}}),
            "outbound tcp\n"
            "  everything but what follows  -> 127.0.0.1:15001 (Envoy outbound)  (-p 15001)\n"
            "  to port 22, 9001             -> leaves untouched, by eth0  (-o 22,9001)\n"
            "  to 10.99.0.0/16              -> leaves untouched, by eth0  (-x 10.99.0.0/16)\n"
            "  sent by uid 1337             -> leaves untouched, by eth0  (-u 1337)\n"
            "  sent by gid 1337             -> leaves untouched, by eth0  (-g 1337)\n"
            "\n"
            "outbound udp, icmp\n"
            "  everything  -> leaves untouched, by eth0\n"
            "\n"
            "inbound tcp\n"
            "  everything but what follows  -> 192.0.2.2:15006 (Envoy inbound)  (-z 15006)\n"
            "  to port 15008, 15090         -> reaches the pod untouched  (-e 15008, -d 15090)\n"
            "\n"
            "inbound udp, icmp\n"
            "  everything  -> reaches the pod untouched\n");
}

// Of what ends so without it, too, an option is no reason.
TEST(Map, GivesAReasonForAllOfALine) {
  EXPECT_THAT(map_of("-i * --bypass-cgroup a --ip-families ipv4", {.families = Family::ipv4, .ways = {Direction::out}}),
              AllOf(HasSubstr("outbound udp, icmp\n  everything  -> leaves untouched, by eth0\n"),
                    HasSubstr("  (--bypass-cgroup a)\n")));
}

TEST(Map, JoinsTheFamiliesWhereTheyEndAlike) {
  EXPECT_THAT(map_of("-m TPROXY -i * -b *"),
              HasSubstr("inbound tcp\n"
                        "  everything  -> port 15006 (Envoy inbound) by TPROXY  (-m TPROXY)\n"));
}

// ---- Two sets of rules

std::vector<EffectRegion> effect_of(Side one, Side other) {
  std::vector<Side> sides;
  sides.push_back(std::move(one));
  sides.push_back(std::move(other));
  Regions regions(std::move(sides));
  return effect(regions);
}

TEST(Effect, TheBackendMakesNoDifference) {
  const std::string options = "-i * -b * -x 10.99.0.0/16 -o 22,9001 -d 15090";
  for (const BackendKind backend : all_backends)
    EXPECT_TRUE(effect_of(side_of(options, BackendKind::iptables_nft), side_of(options, backend)).empty());
}

// A bound socket takes no route to lo: what it sends to the pod itself may leave it.
TEST(Effect, BoundSocketsToThePodItselfHaveTheirRegions) {
  Side dropping = side_of("-i *", BackendKind::iptables_nft);
  LiveChain& chain = dropping.live.front().chains.emplace_back();
  chain.families = Families::both();
  chain.table = Table::filter;
  chain.table_name = "filter";
  chain.name = "OUTPUT";
  chain.hook = builtin_hook(Table::filter, "OUTPUT");
  Rule drop;
  drop.families = Family::ipv4;
  drop.table = Table::filter;
  drop.chain = "OUTPUT";
  drop.matches = {InterfaceMatch{InterfaceDirection::out, "eth0", false},
                  AddressMatch{End::destination, {*AddressRange::parse("127.0.0.9")}, false}};
  drop.target = Verdict::drop;
  chain.rules.push_back({drop, {}, false, 0});
  const auto all = effect_of(side_of("-i *", BackendKind::iptables_nft), std::move(dropping));
  ASSERT_FALSE(all.empty());
  EXPECT_THAT(all.front().witness, ::testing::AllOf(HasSubstr("127.0.0.9"), HasSubstr("--out-interface eth0")));
}

// The same rule may drop other packets on either side: which ones is not known.
TEST(Effect, OfMarksThatAreTooManyIsNotTheSame) {
  const auto side = [](unsigned bits, unsigned port) {
    Side made = side_of("-m NONE --ip-families ipv4", BackendKind::nftables);
    made.live = {rules_of_others(BackendKind::iptables_nft, Family::ipv4,
                                 {"filter -A OUTPUT -m mark --mark 0x20000/0x20000 -j DROP"})};
    for (unsigned bit = 0; bit < bits; ++bit)
      add_first(made.live, Family::ipv4, Table::filter,
                fmt::format("-A OUTPUT -p udp --dport 22 -m mark --mark {0}/{0} -j DROP", 1U << bit));
    add_first(made.live, Family::ipv4, Table::mangle,
              fmt::format("-A OUTPUT -p tcp --dport {} -j MARK --set-xmark 0x20000/0x20000", port));
    return made;
  };
  for (const unsigned bits : {3U, 17U}) {
    SCOPED_TRACE(bits);
    EXPECT_TRUE(effect_of(side(bits, 80), side(bits, 80)).empty());
    const auto all = effect_of(side(bits, 80), side(bits, 443));
    ASSERT_FALSE(all.empty());
    const bool is_known = bits == 3;
    EXPECT_EQ(all.front().after, is_known ? "reaches the pod untouched" : "unknown, too, and maybe another");
  }
}

// Nor where packets can go more ways than are followed.
TEST(Effect, OfTooManyWaysIsNotTheSame) {
  std::vector<std::vector<Match>> conditions;
  for (int i = 0; i < 4; ++i) conditions.push_back({UnknownMatch{fmt::format("-m bpf {}", i)}});
  const auto side = [&](const Target& last) {
    Side made = side_of("-m NONE --ip-families ipv4", BackendKind::nftables);
    made.live = {layered(conditions, last)};
    return made;
  };
  EXPECT_FALSE(effect_of(side(Verdict::drop), side(Redirect{80})).empty());
}

// The rules behind it see what it does, and they may differ.
TEST(Effect, OfAnEffectThatIsNotKnownIsNotTheSame) {
  const auto side = [](std::uint16_t port) {
    Side made = side_of("-m NONE --ip-families ipv4", BackendKind::iptables_nft);
    push(made, Table::raw, "OUTPUT", {}, UnknownTarget{"-j SET"});
    push(made, Table::nat, "OUTPUT", {ProtocolMatch{Protocol::tcp}, PortMatch{End::destination, {port}}}, Redirect{9});
    return made;
  };
  EXPECT_TRUE(effect_of(side(80), side(80)).empty());
  const auto all = effect_of(side(80), side(443));
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.front().after, "unknown, too, and maybe another");
}

// Which packets end so, and which so, is another question than how they may end.
TEST(Effect, OfAMatchThatIsNotKnownSaysWhereItMakesADifference) {
  const UnknownMatch bpf{"-m bpf"};
  const ProtocolMatch tcp{Protocol::tcp};
  const auto side = [&](bool is_passed, bool excludes) {
    Side made = side_of("-m NONE --ip-families ipv4", BackendKind::iptables_nft);
    std::vector<std::pair<std::vector<Match>, Target>> rules;
    if (excludes) rules.emplace_back(std::vector<Match>{tcp, PortMatch{End::destination, {443}}}, Verdict::accept);
    if (is_passed) rules.emplace_back(std::vector<Match>{bpf}, Verdict::accept);
    rules.emplace_back(is_passed ? std::vector<Match>{tcp} : std::vector<Match>{tcp, bpf}, Redirect{9});
    made.live.front().chains.push_back(chain(Family::ipv4, Table::nat, "OUTPUT", false, rules));
    return made;
  };
  const auto swapped = effect_of(side(true, false), side(false, false));
  ASSERT_FALSE(swapped.empty());
  EXPECT_EQ(swapped.front().after, "unknown, too, and maybe another");
  const auto all = effect_of(side(true, false), side(true, true));
  ASSERT_FALSE(all.empty());
  for (const EffectRegion& one : all) EXPECT_THAT(one.packets, HasSubstr("to port 443"));
}

TEST(Effect, OneMorePortIsToldWithAPacketThatShowsIt) {
  const auto all = effect_of(side_of("-i * -b * --ip-families ipv4", BackendKind::iptables_nft),
                             side_of("-i * -b * -o 22 --ip-families ipv4", BackendKind::nftables));
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.front().packets, "outbound tcp, IPv4: to port 22; sent by any uid but 1337; sent by any gid but 1337");
  EXPECT_EQ(all.front().before, "127.0.0.1:15001 (Envoy outbound)");
  EXPECT_EQ(all.front().after, "leaves untouched, by eth0");
  EXPECT_EQ(all.front().witness, "out tcp 198.51.100.1:22 --uid 1000 --gid 1000");
}

// One rule is changed at a random place.
void edit(Random& random, Side& side) {
  std::vector<LiveChain*> chains;
  for (Live& live : side.live) {
    for (LiveChain& chain : live.chains) {
      if (!chain.rules.empty()) chains.push_back(&chain);
    }
  }
  if (chains.empty()) return;
  auto& rules = chains[random.below(chains.size())]->rules;
  const std::size_t at = random.below(rules.size());
  switch (random.below(4)) {
    case 0:
      std::swap(rules[at], rules[random.below(rules.size())]);
      break;
    case 1:
      rules.erase(rules.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 2:
      if (!rules[at].rule.matches.empty())
        rules[at].rule.matches[random.below(rules[at].rule.matches.size())] = random_match(random);
      break;
    default:
      rules.insert(rules.begin() + static_cast<std::ptrdiff_t>(at), rules[at]);
      rules[at].rule.matches = {random_match(random)};
      rules[at].rule.target = Verdict::return_;
  }
}

bool same_end(const Outcome& a, const Outcome& b) {
  return a.kind == Outcome::Kind::unknown ? b.kind == a.kind : same_place(a, b) && a.answers == b.answers;
}

TEST(Effect, RandomEditsAreTheSameOnlyIfEveryPacketIs) {
  const unsigned first = amount("SIDETRACK_SPACE_FIRST", 0);
  const unsigned pairs = amount("SIDETRACK_SPACE_SETS", 1);
  for (unsigned seed = first; seed < first + pairs; ++seed) {
    Random random(1000 + seed);
    std::string what;
    const Side before = random_side(random, what);
    Side after = before;
    edit(random, after);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, what));
    const auto all = effect_of(before, after);
    for (const EffectRegion& one : all) {
      const Packet packet = packet_of(one.witness);
      const Outcome a = explain(packet, before.pod, before.live).outcome;
      const Outcome b = explain(packet, after.pod, after.live).outcome;
      EXPECT_FALSE(a == b) << one.witness << "\n" << sentence(a) << "\n" << one.before << " / " << one.after;
    }
    if (!all.empty()) continue;
    // Said to be the same: so are packets anywhere in the regions of either.
    std::vector<Side> sides{before, after};
    Regions regions(std::move(sides));
    for (const std::size_t side : {0U, 1U}) {
      std::vector<Box> boxes;
      regions.for_each(regions.of(side), [&](const Box& box, const Box&, Leaf leaf) {
        if (leaf != no_such_packet) boxes.push_back(box);
      });
      for (int i = 0; i < 200; ++i) {
        const Packet packet =
            regions.universe().packet(random_point(random, regions, boxes[random.below(boxes.size())]));
        EXPECT_TRUE(
            same_end(explain(packet, before.pod, before.live).outcome, explain(packet, after.pod, after.live).outcome))
            << explain_words(packet);
      }
    }
  }
}

TEST(Effect, RegionsHoldThePacketsThatDifferAndNoOthers) {
  Random random(12);
  for (const char* more : {"-x 10.0.0.0/8", "-o 22", "-k net1", "-c eth0", "-m TPROXY", "-u 5,6"}) {
    SCOPED_TRACE(more);
    Regions regions({side_of("-i * -b * --ip-families ipv4", BackendKind::iptables_legacy),
                     side_of(fmt::format("-i * -b * --ip-families ipv4 {}", more), BackendKind::nftables)});
    const std::vector<EffectRegion> all = effect(regions);
    ASSERT_FALSE(all.empty());
    const Regions::Node before = regions.of(0);
    const Regions::Node after = regions.of(1);
    const auto end = [&](Regions::Node root, const Point& point) {
      return regions.by_ending(regions.diagrams().at(root, point));
    };
    for (const EffectRegion& one : all) {
      for (int i = 0; i < 10; ++i) {
        const Point point = random_point(random, regions, one.box);
        EXPECT_NE(end(before, point), end(after, point)) << one.packets;
      }
    }
    Diagrams& diagrams = regions.diagrams();
    Diagrams::Node missing = diagrams.combined(before, after, [&](Leaf a, Leaf b) {
      return regions.by_ending(a) == regions.by_ending(b) ? Diagrams::no : Diagrams::yes;
    });
    for (const EffectRegion& one : all) {
      const Diagrams::Node region =
          diagrams.of_box(one.box, Diagrams::whole(Diagrams::yes), Diagrams::whole(Diagrams::no));
      missing = diagrams.without(missing, region);
    }
    EXPECT_EQ(missing, Diagrams::whole(Diagrams::no));
  }
}

// TCP is assured once it is established; whether UDP is depends on how much went both ways.
TEST(Space, AssuredConnectionsAreToldApartByTheirProtocol) {
  Side side = side_of("-m NONE --ip-families ipv4", BackendKind::iptables_legacy);
  ConnectionMatch assured{ConnectionMatch::Of::status, false, End::source, false, {}, {}};
  assured.number = 1 << 2;  // IPS_ASSURED
  push(side, Table::filter, "OUTPUT", {assured}, Verdict::drop);
  Regions regions({side});
  const Regions::Node root = regions.of(0);
  const auto kind = [&](Value protocol, Value state) {
    Point point = regions.example(regions.everything(Direction::out, Family::ipv4));
    point[index(Field::protocol)] = protocol;
    point[index(Field::state)] = state;
    return regions.decision(regions.diagrams().at(root, point)).ending.kind;
  };
  constexpr Value is_new = 0;
  constexpr Value established = 1;  // of connection_states
  EXPECT_EQ(kind(space::tcp, established), Outcome::Kind::dropped);
  EXPECT_EQ(kind(space::udp, established), Outcome::Kind::unknown);
  EXPECT_EQ(kind(space::udp, is_new), Outcome::Kind::leaves);
}

// ---- Marks

// More questions about marks than are told apart: what asks for one is not known, and never guessed.
TEST(Space, ManyMarksAreNotKnown) {
  Side side = side_of("-i * -b * --ip-families ipv4", BackendKind::iptables_legacy);
  std::vector<std::pair<std::vector<Match>, Target>> rules;
  for (std::uint32_t mark = 1; mark < 100; ++mark)
    rules.push_back({{MarkMatch{mark << 8, 0xffff00, false}}, mark % 2 == 0 ? Verdict::drop : Verdict::accept});
  rules.push_back({{}, SetMark{0x100, 0x100}});
  side.live.front().chains.push_back(chain(Family::ipv4, Table::filter, "OUTPUT", false, rules));
  const Side copy = side;
  Regions regions({std::move(side)});
  ASSERT_FALSE(regions.universe().marks_known);
  const Regions::Node root = regions.of(0, Scope::ordinary);
  Point point = regions.example(regions.ordinary(copy.pod, Direction::out, Family::ipv4));
  const Ending& ending = regions.decision(regions.diagrams().at(root, point)).ending;
  EXPECT_EQ(ending.kind, Outcome::Kind::unknown);
  EXPECT_EQ(ending.either.size(), 2U) << ending_text(ending);  // dropped, or to the proxy
}

// As those of kube-proxy's peers: one for each address, and a rule for each mark.
TEST(Space, ManyValuesOfMarksAreToldApart) {
  Side side = side_of("-m NONE --ip-families ipv4", BackendKind::iptables_legacy);
  std::vector<std::pair<std::vector<Match>, Target>> rules;
  for (std::uint32_t mark = 1; mark <= 200; ++mark) rules.push_back({{MarkMatch{mark, ~0U, false}}, Verdict::drop});
  side.live.front().chains.push_back(chain(Family::ipv4, Table::filter, "OUTPUT", false, rules));
  Regions regions({std::move(side)});
  ASSERT_TRUE(regions.universe().marks_known);
  const Regions::Node root = regions.of(0);
  Point point = regions.example(regions.everything(Direction::out, Family::ipv4));
  for (const std::uint32_t mark : {0U, 1U, 150U, 200U, 201U}) {
    point[index(Field::mark)] = regions.universe().mark_class(mark);
    const Outcome::Kind kind = regions.decision(regions.diagrams().at(root, point)).ending.kind;
    EXPECT_EQ(kind, mark >= 1 && mark <= 200 ? Outcome::Kind::dropped : Outcome::Kind::leaves) << mark;
  }
}

// Each of them would double the ways that a packet may go.
TEST(Space, VeryManyMarksThatAreNotKnownAreRefused) {
  Side side = side_of("-m NONE --ip-families ipv4", BackendKind::iptables_legacy);
  std::vector<std::pair<std::vector<Match>, Target>> rules;
  for (std::uint32_t mark = 1; mark <= 101; ++mark)
    rules.push_back({{MarkMatch{mark << 8, 0xffff00, false}}, Verdict::drop});
  rules.push_back({{}, SetMark{0x100, 0x100}});
  side.live.front().chains.push_back(chain(Family::ipv4, Table::filter, "OUTPUT", false, rules));
  try {
    const Regions regions({std::move(side)});
    FAIL();
  } catch (const TooManyRegions& error) {
    EXPECT_THAT(error.what(), HasSubstr("101 rules ask for marks"));
  }
}

// Rules that set one bit of the mark each, by the port: what they leave as it is may be anything.
Side side_with_bits(std::uint32_t bits, bool are_asked) {
  Side side = side_of("-i * -b * --ip-families ipv4", BackendKind::iptables_legacy);
  std::vector<std::pair<std::vector<Match>, Target>> set;
  std::vector<std::pair<std::vector<Match>, Target>> asked;
  for (std::uint32_t i = 0; i < bits; ++i) {
    const auto port = static_cast<std::uint16_t>(1000 + i);
    set.push_back({{ProtocolMatch{Protocol::tcp, false}, PortMatch{End::destination, {{port, port}}, false}},
                   SetMark{1U << i, 1U << i}});
    asked.push_back({{MarkMatch{1U << i, 1U << i, false}}, Verdict::drop});
  }
  side.live.front().chains.push_back(chain(Family::ipv4, Table::mangle, "OUTPUT", false, set));
  if (are_asked) side.live.front().chains.push_back(chain(Family::ipv4, Table::filter, "OUTPUT", false, asked));
  return side;
}

TEST(Regions, OfMarksByBitsAreAsManyAsTheRules) {
  for (const bool are_asked : {true, false}) {
    const Side side = side_with_bits(10, are_asked);
    Regions regions({side});
    static_cast<void>(regions.of(0));
    EXPECT_LT(regions.followed(), 5000U);
    Random random(1);
    check(side, random, 300);
  }
}

// A rule of 30 users, each with a mark that nobody asks for: of replies it is unknown who sends them.
TEST(Regions, OfMarksThatNobodyAsksForAreNotToldApart) {
  Side side = side_of("-i * -b * --ip-families ipv4", BackendKind::iptables_legacy);
  std::vector<std::pair<std::vector<Match>, Target>> rules;
  for (std::uint32_t i = 0; i < 30; ++i)
    rules.push_back({{OwnerMatch{OwnerKind::uid, {{1000 + i, 1000 + i}}, false}}, SetMark{i + 1, ~0U}});
  side.live.front().chains.push_back(chain(Family::ipv4, Table::mangle, "OUTPUT", false, rules));
  Regions regions({side});
  EXPECT_EQ(regions.universe().marks.size(), 1U);
  static_cast<void>(regions.of(0));
  EXPECT_LT(regions.followed(), 5000U);
  const Trace trace = explain(packet_of("in tcp :80"), side.pod, side.live);
  EXPECT_EQ(trace.outcome.kind, Outcome::Kind::lands) << sentence(trace.outcome);
  Random random(1);
  check(std::move(side), random, 100);
}

// Rules that set, save, restore and ask for bits of the mark, and routes by it.
TEST(Space, RandomBitsOfMarks) {
  const unsigned sets = amount("SIDETRACK_SPACE_SETS", 3);
  for (unsigned seed = 0; seed < sets; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Side side = side_of(random.one_in(2) ? "-i * -b * --ip-families ipv4" : "-m TPROXY -b * --ip-families ipv4",
                        BackendKind::iptables_legacy);
    const auto bits = [&] { return static_cast<std::uint32_t>(random.below(8)); };
    const auto mask = [&] { return random.one_in(4) ? ~0U : 1 + bits(); };
    const auto target = [&]() -> Target {
      switch (random.below(6)) {
        case 0:
          return Connmark::save;
        case 1:
          return Connmark::restore;
        case 2:
          return SetConnmark{bits(), mask()};
        default:
          return SetMark{bits(), mask()};
      }
    };
    Live& others = side.live.emplace_back();
    others.backend = BackendKind::iptables_nft;
    for (const auto& [table, name] : {std::pair(Table::mangle, "PREROUTING"), std::pair(Table::mangle, "OUTPUT"),
                                      std::pair(Table::filter, "INPUT"), std::pair(Table::filter, "OUTPUT")}) {
      LiveChain made = chain(Family::ipv4, table, name, false, {});
      for (std::size_t i = 1 + random.below(4); i-- > 0;) {
        LiveRule rule = random_rule(random, Family::ipv4, table, name);
        const std::uint32_t asked = mask();
        if (random.one_in(2)) rule.rule.matches.emplace_back(MarkMatch{bits() & asked, asked, random.one_in(3)});
        if (!random.one_in(4)) rule.rule.target = table == Table::mangle ? target() : Target(Verdict::drop);
        made.rules.push_back(rule);
      }
      others.chains.push_back(made);
    }
    for (std::size_t i = random.below(3); i-- > 0;) {
      PolicyRule rule;
      rule.mask = mask();
      rule.mark = bits() & rule.mask;
      rule.table = static_cast<std::uint32_t>(7 + i);
      side.pod.insert(rule);
      Route route = side.pod.routes.front();
      route.table = rule.table;
      if (random.one_in(2)) route.kind = random.one_in(2) ? Route::Kind::blackhole : Route::Kind::local;
      if (route.kind != Route::Kind::unicast) route.device = route.kind == Route::Kind::local ? "lo" : "";
      side.pod.routes.push_back(route);
    }
    if (random.one_in(3)) side.pod.tcp_fwmark_accept = true;
    check(std::move(side), random, 200);
  }
}

// Packets by net2 to the address that the plan adds to lo have it as their source, too.
TEST(Space, AddressesOnLoAsSourceAndDestination) {
  Random random(1);
  check(side_of("-m TPROXY -c net2 -k net1 --redirect-dns --capture-all-dns --dns-server 10.96.0.53,fd00:96::53 "
                "--ip-families ipv4,ipv6",
                BackendKind::nftables),
        random, 200);
}

// What is exempt from tracking is not translated, unless it is tracked already when it comes in by lo.
TEST(Space, RulesThatExemptFromTracking) {
  Side side = side_of("-i * -b * --ip-families ipv4", BackendKind::iptables_legacy);
  const PortMatch dns{End::destination, {{53, 53}}, false};
  push(side, Table::raw, "OUTPUT", {ProtocolMatch{Protocol::tcp, false}, dns}, Notrack{});
  push(side, Table::raw, "PREROUTING", {ProtocolMatch{Protocol::udp, false}}, Notrack{});
  Random random(1);
  check(std::move(side), random, 500);
}

// ---- Long lists

TEST(Regions, OfRulesThatOnlyCountNothingIsAsked) {
  const auto followed = [](const Side& side) {
    std::vector<Side> sides{side};
    Regions regions(std::move(sides));
    static_cast<void>(regions.of(0));
    return regions.followed();
  };
  Side side = side_of("-i * -b *", BackendKind::iptables_legacy);
  const std::size_t before = followed(side);
  LiveChain& chain = side.live.front().chains.front();
  for (std::uint16_t port = 1000; port < 1100; port += 10) {
    LiveRule only_counts;
    only_counts.rule = {chain.families, chain.table, chain.name, {}, NonTerminating{"-j LOG"}, {}, {}};
    only_counts.rule.matches = {ProtocolMatch{Protocol::tcp, false},
                                PortMatch{End::destination, {{port, port}}, false}};
    chain.rules.insert(chain.rules.begin(), only_counts);
  }
  EXPECT_EQ(followed(side), before);
}

// Rules of an address and a port each, which have nothing in common.
Side with_rules_that_do_not_merge(std::uint32_t count) {
  Side side = side_of("-i * -b * --ip-families ipv4", BackendKind::iptables_legacy);
  std::vector<std::pair<std::vector<Match>, Target>> rules;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto port = static_cast<std::uint16_t>(1000 + i);
    const std::string address = fmt::format("10.{}.{}.1", i / 250, i % 250);
    rules.push_back({{AddressMatch{End::destination, {*AddressRange::parse(address)}, false},
                      ProtocolMatch{Protocol::tcp, false}, PortMatch{End::destination, {{port, port}}, false}},
                     i % 2 == 0 ? Verdict::drop : Verdict::accept});
  }
  side.live.front().chains.push_back(chain(Family::ipv4, Table::filter, "OUTPUT", false, rules));
  return side;
}

TEST(Regions, OfRulesThatDoNotMergeAreAsManyAsTheRules) {
  const Side side = with_rules_that_do_not_merge(60);
  Regions regions({side});
  static_cast<void>(regions.of(0, Scope::ordinary));
  EXPECT_LT(regions.followed(), 1500U);
  Random random(1);
  check(side, random, 500);
}

TEST(Regions, OfRulesThatDoTheSameTakeNoPacketEach) {
  const Side side = with_rules_that_do_not_merge(1000);
  Regions regions({side});
  const Regions::Node root = regions.of(0, Scope::ordinary);
  EXPECT_LT(regions.followed(), 300U);
  Point usual = regions.example(regions.ordinary(side.pod, Direction::out, Family::ipv4));
  usual[index(Field::uid)] = 1337;  // the proxy, whose packets no rule of ours translates before
  usual[index(Field::protocol)] = space::tcp;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    Point point = usual;
    point[index(Field::destination)] = value_of(*Address::parse(fmt::format("10.{}.{}.1", i / 250, i % 250)));
    point[index(Field::destination_port)] = 1000 + i;
    const Leaf leaf = regions.diagrams().at(root, point);
    ASSERT_EQ(leaf, regions.at(0, point)) << "by rule " << i + 1;
    const Decision& decision = regions.decision(leaf);
    if (i % 2 == 0) {
      ASSERT_EQ(decision.step->number, i + 1);
    }
  }
}

// What comes behind a rule that may match is worked out once, for requests and for answers.
TEST(Regions, OfRulesThatMayReturnGrowAsTheRules) {
  const auto with_rules = [](std::uint16_t count) {
    Side side = side_of("-i * -b * --ip-families ipv4", BackendKind::iptables_legacy);
    std::vector<std::pair<std::vector<Match>, Target>> rules;
    for (std::uint16_t port = 1000; port < 1000 + count; ++port) {
      rules.push_back({{ProtocolMatch{Protocol::tcp, false}, PortMatch{End::destination, {{port, port}}, false},
                        UnknownMatch{fmt::format("-m recent {}", port)}},
                       Verdict::return_});
    }
    rules.push_back({{}, SetMark{1, 1}});
    side.live.front().chains.push_back(chain(Family::ipv4, Table::mangle, "INPUT", false, rules));
    side.live.front().chains.push_back(
        chain(Family::ipv4, Table::filter, "INPUT", false,
              {{{MarkMatch{1, 1, false}, AddressMatch{End::source, {*AddressRange::parse("10.0.0.0/8")}, false}},
                Verdict::drop}}));
    return side;
  };
  const auto followed = [&](std::uint16_t count) {
    Regions regions({with_rules(count)});
    static_cast<void>(regions.of(0));
    return regions.followed();
  };
  EXPECT_LT(followed(60), 3 * followed(20));
  Random random(1);
  check(with_rules(20), random, 500);
}

// Behind a rule of which it is unknown whether it matches the others are not asked one by one.
TEST(Regions, OfRulesBehindOnesThatAreUnknownTakeNoPacketEach) {
  const auto with_unknown_rules = [](std::uint32_t count) {
    Side side = with_rules_that_do_not_merge(count);
    std::vector<LiveRule>& rules = side.live.front().chains.back().rules;
    const std::pair<const char*, Target> unknown[] = {
        {"-m recent", Verdict::accept}, {"-m bpf", Verdict::drop}, {"-m set", SetMark{1, 1}}};
    for (const auto& [words, target] : unknown) {
      LiveRule& rule = *rules.emplace(rules.begin());
      rule.rule = {Family::ipv4, Table::filter, "OUTPUT", {UnknownMatch{words}}, target, {}, {}};
    }
    return side;
  };
  Regions regions({with_unknown_rules(1000)});
  static_cast<void>(regions.of(0, Scope::ordinary));
  EXPECT_LT(regions.followed(), 1500U);
  EXPECT_LT(regions.sets().bytes() + regions.diagrams().bytes(), 16U << 20);
  Random random(1);
  check(with_unknown_rules(60), random, 500);
}

// So many that no function may call itself for each.
TEST(Regions, OfThousandsOfRulesThatMayMark) {
  Side side = side_of("-m NONE --ip-families ipv4", BackendKind::iptables_legacy);
  std::vector<std::pair<std::vector<Match>, Target>> rules(20000, {{UnknownMatch{"-m bpf"}}, SetMark{1, 1}});
  rules.push_back({{MarkMatch{1, 1, false}}, Verdict::drop});
  rules.insert(rules.begin(), {{ProtocolMatch{Protocol::tcp, false}}, Verdict::drop});
  side.live.front().chains.push_back(chain(Family::ipv4, Table::filter, "OUTPUT", false, rules));
  Regions regions({side});
  Point point = regions.example(regions.ordinary(side.pod, Direction::out, Family::ipv4));
  point[index(Field::protocol)] = space::tcp;
  EXPECT_EQ(regions.decision(regions.at(0, point)).ending.kind, Outcome::Kind::dropped);
}

TEST(Regions, OfChainsThatMayBeJumpedToAndAccept) {
  Side side = side_of("-m NONE --ip-families ipv4", BackendKind::iptables_legacy);
  const Match tcp_alone = ProtocolMatch{Protocol::tcp, false};
  LiveChain one =
      chain(Family::ipv4, Table::filter, "ONE", false, {{{tcp_alone}, SetMark{1, 1}}, {{}, Verdict::accept}});
  one.hook.reset();
  side.live.front().chains.push_back(one);
  side.live.front().chains.push_back(chain(Family::ipv4, Table::filter, "OUTPUT", false,
                                           {{{UnknownMatch{"-m bpf"}}, Jump{"ONE"}}, {{}, Verdict::drop}}));
  Regions regions({side});
  const Regions::Node root = regions.of(0, Scope::ordinary);
  const Point point = regions.example(regions.ordinary(side.pod, Direction::out, Family::ipv4));
  EXPECT_EQ(ending_text(regions.decision(regions.diagrams().at(root, point)).ending),
            "unknown: `-m bpf` (dropped, or leaves untouched, by eth0)");
}

TEST(Regions, ThatAreTooManyAreNotGuessed) {
  Regions regions({with_rules_that_do_not_merge(1000)}, 50);
  try {
    static_cast<void>(regions.of(0, Scope::ordinary));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failed);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("exceeds 512 MiB"));
  }
}

TEST(Join, ThousandsOfRangesAreOneRuleWithTheNumberOfTheFirst) {
  std::string options = "-i * -b * --ip-families ipv4 -x ";
  for (int i = 0; i < 1000; ++i) options += fmt::format("{}10.{}.{}.7", i == 0 ? "" : ",", i / 256, i % 256);
  Side side = side_of(options, BackendKind::iptables_legacy);
  const Side copy = side;
  std::vector<Side> sides;
  sides.push_back(std::move(side));
  Regions regions(std::move(sides));
  const Regions::Node root = regions.of(0);
  EXPECT_LT(regions.followed(), 5000U);
  Point point = regions.example(regions.ordinary(copy.pod, Direction::out, Family::ipv4));
  point[index(Field::destination)] = value_of(*Address::parse("10.3.5.7"));
  const Leaf leaf = regions.diagrams().at(root, point);
  EXPECT_EQ(ending_text(regions.decision(leaf).ending), "leaves untouched, by eth0");
  const Trace first = explain(packet_of("out tcp 10.0.0.7:80 --uid 1000"), copy.pod, copy.live);
  EXPECT_EQ(regions.decision(leaf).step->number, first.steps[first.decisive.back()].number);
  point[index(Field::destination)] = value_of(*Address::parse("10.3.5.8"));
  EXPECT_EQ(ending_text(regions.decision(regions.diagrams().at(root, point)).ending),
            "127.0.0.1:15001 (Envoy outbound)");
}

TEST(ReadRule, UnderstandsWhatIsWritten) {
  for (const char* options : {"-i * -b * -d 15090", "-m TPROXY -i * -b 80 -o 22 --drop-invalid",
                              "-i 10.0.0.0/8,fd00::/8 -x 10.1.0.0/16 -q 80 -c net2 -k net1 -u 1,2 -g 5",
                              "-i * --redirect-dns --dns-server 10.96.0.53,fd00:96::53"}) {
    const Plan plan = planned(options);
    for (const BackendKind backend : {BackendKind::iptables_nft, BackendKind::nftables}) {
      for (const LiveChain& chain : as_live(plan.ruleset, backend).chains) {
        for (const LiveRule& live : chain.rules) {
          Rule read = read_rule(iptables_words(live.rule));
          read.families = live.rule.families;
          read.table = live.rule.table;
          EXPECT_TRUE(read == live.rule) << iptables_words(live.rule) << "\n" << iptables_words(read);
        }
      }
    }
  }
  const Rule unknown = read_rule("-A OUTPUT -p tcp -m statistic --mode random --probability 0.5 -j HMARK --anything");
  ASSERT_EQ(unknown.matches.size(), 2U);
  EXPECT_EQ(iptables_words(unknown.matches[1]), "-m statistic --mode random --probability 0.5");
  EXPECT_TRUE(std::holds_alternative<UnknownTarget>(unknown.target));
}

TEST(ReadRules, BothSidesHaveTheInterfacesThatEitherNames) {
  const auto document = [](const char* interface) {
    return RulesText{interface, fmt::format(R"({{"rules": [{{"table": "nat", "families": ["ipv4"],
                                "rule": "-A OUTPUT -o {} -j RETURN"}}], "routing": {{"rules": [], "routes": []}}}})",
                                            interface)};
  };
  const auto [one, other] = read_sides(document("net1"), document("net2"));
  const auto text = [](const Side& side) {
    std::string all;
    for (const Interface& interface : side.pod.interfaces) {
      all += interface.name;
      for (const InterfaceAddress& own : interface.addresses) all += " " + own.address.text();
      all += "\n";
    }
    for (const Route& route : side.pod.routes) all += ip_words(route) + "\n";
    return all;
  };
  EXPECT_EQ(text(one), text(other));
  EXPECT_THAT(text(one), ::testing::AllOf(HasSubstr("net1"), HasSubstr("net2")));
}

// `show` has words of its own for what it does not understand.
TEST(ReadRules, WhatShowDoesNotUnderstandIsNotKnown) {
  const RulesText text{"show.json", R"({"chains": [{"backend": "iptables-nft", "families": ["ipv4"], "table": "filter",
      "chain": "OUTPUT", "whose": "other", "hook": "OUTPUT", "priority": 0, "type": "filter", "policy": "accept",
      "dormant": false, "rules": [{"number": 1, "families": ["ipv4"], "whose": "other",
      "rule": "-A OUTPUT @nh,48,16 & 1fff ^ 0000: cmp [1: …] -j DROP"}]}],
      "routing": {"rules": [], "routes": [], "addresses": [{"address": "::6/128", "dev": "lo"}]}})"};
  const auto [one, other] = read_sides(text, text);
  const Rule& rule = one.live.front().chains.front().rules.front().rule;
  EXPECT_FALSE(is_understood(rule));
  EXPECT_EQ(rule.table, Table::filter);
  EXPECT_EQ(rule.chain, "OUTPUT");
  EXPECT_EQ(rule.families, Families(Family::ipv4));
  EXPECT_FALSE(one.live.front().chains.front().rules.front().ours);
  const Interface* lo = one.pod.interface("lo");
  EXPECT_TRUE(std::ranges::any_of(lo->addresses, [](const auto& own) { return own.address.text() == "::6"; }));
  RulesText wrong = text;
  wrong.text.replace(wrong.text.find("\"accept\""), 8, "\"DROP\"");
  EXPECT_THAT([&] { static_cast<void>(read_sides(wrong, wrong)); },
              ::testing::ThrowsMessage<Error>(HasSubstr("policy: \"DROP\": expected accept, drop")));
}

// Rules of a file, which a person may have edited.
TEST(ReadRules, GuessesNothing) {
  const auto sides = [](const char* table, const char* family, const char* rule) {
    const RulesText text{"edited.json", fmt::format(R"({{"rules": [{{"table": "{}", "families": ["{}"], "rule": "{}"}}],
                                          "routing": {{"rules": [], "routes": []}}}})",
                                                    table, family, rule)};
    return read_sides(text, text).first;
  };
  const auto target = [&](const char* rule) {
    const Side side = sides("nat", "ipv4", rule);
    for (const LiveChain& chain : side.live.front().chains) {
      if (!chain.rules.empty()) return chain.rules.front().rule.target;
    }
    return Target{};
  };
  EXPECT_TRUE(std::holds_alternative<UnknownTarget>(target("-A OUTPUT -j NOPE")));
  EXPECT_TRUE(std::holds_alternative<Jump>(target("-A OUTPUT -j ISTIO_OUTPUT")));
  for (const char* other :
       {"NOPE --to-ports 1", "TPROXY --mark 1 --on-port 2", "TPROXY --tproxy-mark 1 --port 2",
        "NOPE --tproxy-mark 1 --on-port 2", "TPROXY --tproxy-mark 1", "TPROXY --tproxy-mark x --on-port 2",
        "TPROXY --tproxy-mark 1 --on-port x", "TPROXY --tproxy-mark 1 --on-port 2 --on-ip 127.0.0.1",
        "MARK --or-mark x", "NOPE --set-mark 1", "MARK --set-mark x", "CONNMARK --set-mark 1 --x", "NOPE --save-mark",
        "CONNMARK --zone", "CT --zone x", "NOPE --zone 1", "NOPE --notrack", "CT --helper ftp"})
    EXPECT_TRUE(std::holds_alternative<UnknownTarget>(target(("-A OUTPUT -j " + std::string(other)).c_str()))) << other;
  EXPECT_EQ(std::get<Tproxy>(target("-A OUTPUT -j TPROXY --tproxy-mark 1/3 --on-port 2")), (Tproxy{2, 1, 3}));
  EXPECT_EQ(std::get<Redirect>(target("-A OUTPUT -j REDIRECT --to-ports 7")).port, 7);
  const auto refused = [&](const char* table, const char* family, const char* rule) -> std::string {
    try {
      static_cast<void>(sides(table, family, rule));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string nothing = R"({"rules": [], "routing": {"rules": [], "routes": []}})";
  EXPECT_NO_THROW(static_cast<void>(read_sides({"a", nothing}, {"b", nothing})));
  EXPECT_THAT(
      [&] {
        static_cast<void>(read_sides({"a", nothing + std::string("\0x", 2)}, {"b", nothing}));
      },
      ::testing::ThrowsMessage<Error>(HasSubstr("a: is not JSON: it has a zero byte")));
  EXPECT_THAT(refused("nut", "ipv4", "-A OUTPUT -j DROP"), HasSubstr("rules[0].table: \"nut\": expected raw, mangle"));
  EXPECT_THAT(refused("nat", "ipv9", "-A OUTPUT -j DROP"),
              HasSubstr("rules[0].families[0]: \"ipv9\": expected ipv4, ipv6"));
  EXPECT_THAT(refused("nat", "ipv4", "-A OUTPUT garbage here"), HasSubstr("expected a rule as iptables -S writes it"));
}

}  // namespace
}  // namespace sidetrack::space
