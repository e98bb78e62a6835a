// SPDX-License-Identifier: GPL-2.0-or-later
// Lines that people read, compared with the regions that they are made of.
#include "space/cover.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "render/map.h"
#include "unit/asking.h"
#include "unit/live_rules.h"
#include "unit/space/random_rules.h"

namespace sidetrack::space {
namespace {

using Rules = std::vector<std::pair<std::vector<Match>, Target>>;

Side side_of(const char* options, const Rules& others) {
  const Plan plan = planned(options);
  Side side{assumed_pod(plan), {as_live(plan.ruleset, BackendKind::iptables_legacy)}};
  side.live.front().chains.push_back(chain(Family::ipv4, Table::filter, "OUTPUT", false, others));
  return side;
}

// Many rules of others in filter OUTPUT, each of an address or a network, some of a port and some of a user.
Side with_many_rules(Random& random, std::size_t count) {
  Rules rules;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t network = 8 * random.below(32);
    const std::string address = fmt::format("10.{}.{}.{}", random.below(3), i % 256, network);
    auto& [matches, target] = rules.emplace_back();
    matches = {AddressMatch{random.one_in(8) ? End::source : End::destination,
                            {*AddressRange::parse(address + (random.one_in(3) ? "/29" : ""))},
                            false},
               ProtocolMatch{Protocol::tcp, false}};
    if (!random.one_in(3)) {
      const auto port = static_cast<std::uint16_t>(20 + random.below(500));
      matches.emplace_back(PortMatch{End::destination, {{port, port}}, random.one_in(9)});
    }
    if (random.one_in(6)) matches.emplace_back(OwnerMatch{OwnerKind::uid, {{1000, 1337}}, false});
    target = random.one_in(3) ? Verdict::accept : Verdict::drop;
  }
  return side_of("-i * -b * -x 10.1.0.0/16 -o 22 --ip-families ipv4", rules);
}

bool contains(const Sets& sets, const Box& box, const Point& point) {
  for (std::size_t i = 0; i < field_count; ++i) {
    if (!sets.contains(box[i], point[i])) return false;
  }
  return true;
}

// A packet of each region ends as the last line with it says, or as all its lines do if lines have no exceptions.
void expect_true_lines(Random& random, Side side, bool exceptions) {
  Regions regions({std::move(side)});
  const Regions::Node root = regions.of(0, Scope::ordinary);
  const SectionOptions options{.ways = {Direction::out, Direction::in, Direction::lo}, .exceptions = exceptions};
  for (const Section& section : sections(regions, 0, options)) {
    regions.diagrams().for_each(root, section.rest.box, [&](const Box& box, Leaf leaf) {
      if (leaf == no_such_packet || ::testing::Test::HasFailure()) return;
      Point point{};
      for (std::size_t i = 0; i < field_count; ++i) point[i] = random.in(regions.sets().intervals(box[i]));
      const Line* last = &section.rest;
      for (const Line& line : section.lines) {
        if (!contains(regions.sets(), line.box, point)) continue;
        if (last != &section.rest && !last->has_exceptions) {
          EXPECT_EQ(line.ending, last->ending);
        }
        last = &line;
      }
      EXPECT_TRUE(exceptions || !last->has_exceptions);
      EXPECT_EQ(ending_text(last->ending), ending_text(regions.decision(leaf).ending))
          << explain_words(regions.universe().packet(point));
    });
  }
}

TEST(Cover, LinesSayWhatBecomesOfEachPacket) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Side side = with_many_rules(random, 10 + 15 * seed);
    expect_true_lines(random, side, false);
    expect_true_lines(random, side, true);
    if (::testing::Test::HasFailure()) return;
  }
}

// For each user that they are asked about; not all that is left by them, rule by rule.
TEST(Cover, HasALineForEachRuleOfOthers) {
  Rules rules;
  for (std::uint16_t i = 0; i < 300; ++i) {
    const auto port = static_cast<std::uint16_t>(1000 + i);
    const AddressRange address = *AddressRange::parse(fmt::format("10.{}.{}.1", i / 250, i % 250));
    rules.push_back({{AddressMatch{End::destination, {address}, false}, ProtocolMatch{Protocol::tcp, false},
                      PortMatch{End::destination, {{port, port}}, false}},
                     Verdict::drop});
  }
  Regions regions({side_of("-i * -b * --ip-families ipv4", rules)});
  const std::string text = map_text(regions, 0, {.families = Family::ipv4, .ways = {Direction::out}});
  const std::string first =
      "outbound tcp\n"
      "  everything but what follows                    -> 127.0.0.1:15001 (Envoy outbound)  (-p 15001)\n"
      "  sent by uid 1337, but what follows             -> leaves untouched, by eth0  (-u 1337)\n"
      "  sent by gid 1337, but what follows             -> leaves untouched, by eth0  (-g 1337)\n"
      "  to 10.0.0.1; to port 1000; sent by uid 1337    -> dropped\n";
  EXPECT_EQ(text.substr(0, first.size()), first);
  EXPECT_LT(std::ranges::count(text, '\n'), 2 * 300 + 10);
}

}  // namespace
}  // namespace sidetrack::space
