// SPDX-License-Identifier: GPL-2.0-or-later
// Whether verify is exact: beside random rules of others it finds nothing in the way if and only if explain() says of
// every packet that the plan captures that it ends as planned. Packets are random, and at the edges of what rules name.
// SIDETRACK_OBSTACLES_SETS is how many sets of rules there are to be, SIDETRACK_OBSTACLES_FIRST the number of the
// first.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "apply/obstacles.h"
#include "apply/without_others.h"
#include "model/config.h"
#include "model/error.h"
#include "rule/iptables.h"
#include "space/regions.h"
#include "support/amount.h"
#include "unit/asking.h"
#include "unit/space/random_rules.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

using space::Field;
using space::Random;
using space::Value;

constexpr int captured_each = 100;  // packets
constexpr int most_tried = 2000;
constexpr unsigned enough_for_both = 8;  // sets of rules: some are in the way, others are not

struct Beside {
  Plan plan;
  BackendKind backend{};
  PodView pod;
  std::vector<Live> live;
  std::string text;
};

// Rules of others in front of ours, and in tables of another backend; in some pods other settings, too.
Beside random_beside(Random& random) {
  Beside made;
  static const char* const few[] = {"-i *",
                                    "-b *",
                                    "-i * -b * -d 22 -o 80",
                                    "-i 10.0.0.0/8 -x 10.1.0.0/16",
                                    "-m TPROXY -b *",
                                    "-i * --redirect-dns --capture-all-dns"};
  const std::string options =
      random.one_in(5) ? random_options(random) : fmt::format("{} --ip-families ipv4", random.of(few));
  made.plan = planned(options);
  made.backend = random.of(all_backends);
  made.pod = assumed_pod(made.plan);
  made.live = {as_live(made.plan.ruleset, made.backend)};
  if (random.one_in(3)) {
    for (LiveChain& chain : made.live.front().chains) {
      if (!chain.hook || !random.one_in(2)) continue;
      LiveRule rule = random_rule(random, chain.families, chain.table, chain.name);
      if (chain.table == Table::nat && random.one_in(2)) rule.rule.target = Redirect{9000};
      chain.rules.insert(chain.rules.begin(), std::move(rule));
    }
  } else {
    made.live.emplace_back().backend =
        made.backend == BackendKind::iptables_nft ? BackendKind::iptables_legacy : BackendKind::iptables_nft;
    add_others(random, made.live.back());
  }
  if (random.one_in(4)) add_settings(random, made.pod);
  made.text = fmt::format("{} {}\n", name(made.backend), options);
  for (const Live& live : made.live) {
    for (const LiveChain& chain : live.chains) {
      for (const LiveRule& rule : chain.rules) {
        if (!rule.ours)
          made.text += fmt::format("{} {} {}\n", name(live.backend), name(chain.table), iptables_words(rule.rule));
      }
      if (chain.policy != Verdict::accept)
        made.text += fmt::format("the policy of {} {}\n", name(chain.table), chain.name);
    }
  }
  return made;
}

// Next to what random rules and options name.
Value edge(Random& random, Field field, Family family) {
  static const char* const addresses[2][9] = {
      {"10.0.0.0", "10.255.255.255", "192.0.2.2", "127.0.0.1", "127.0.0.6", "203.0.113.0", "10.96.0.10", "10.96.0.53",
       "10.1.0.0"},
      {"2001:db8::2", "2001:db8:ffff::", "::1", "::6", "::9", "fd00:96::53", "fd00:96::", "fd00::", "2001:db8::1"}};
  static const Value ports[] = {22, 53, 80, 99, 443, 1024, 8080, 9001, 15001, 15006, 15008, 15053, 15090, 32768, 60999};
  static const Value ids[] = {0, 1000, 1337, 2000, 3000, 3002};
  Value value = 0;
  if (field == Field::source || field == Field::destination) {
    value = space::value_of(*Address::parse(random.of(addresses[family == Family::ipv4 ? 0 : 1])));
  } else {
    value = field == Field::uid || field == Field::gid ? random.of(ids) : random.of(ports);
  }
  return random.one_in(2) ? value : value + 1 - random.below(3);
}

// What programs send and networks carry (see space::Scope).
Packet random_packet(Random& random, space::Regions& regions) {
  const Family family = random.one_in(4) ? Family::ipv6 : Family::ipv4;
  const auto way = static_cast<Direction>(random.below(3));
  const space::Box box = regions.ordinary(regions.side(0).pod, way, family);
  space::Point point{};
  for (std::size_t i = 0; i < space::field_count; ++i) {
    point[i] = random.in(regions.sets().intervals(box[i]));
    const auto field = static_cast<Field>(i);
    const bool has_edges = field == Field::source || field == Field::destination || field == Field::source_port ||
                           field == Field::destination_port || field == Field::uid || field == Field::gid;
    if (!has_edges || random.one_in(4)) continue;
    const Value value = edge(random, field, family);
    if (regions.sets().contains(box[i], value)) point[i] = value;
  }
  if (!random.one_in(3)) point[space::index(Field::protocol)] = space::tcp;
  return regions.universe().packet(point);
}

bool is_captured(const Outcome& outcome) {
  return outcome.kind == Outcome::Kind::lands && (outcome.transparent || outcome.original);
}

struct Counted {
  int silent = 0;
  int packets = 0;
  int witnesses = 0;
};

void check(const Beside& beside, Random& random, Counted& counted) {
  const PodView usual = without_others(beside.pod, beside.plan);
  const std::vector<Live> planned{as_live(beside.plan.ruleset, beside.backend)};
  const std::vector<Obstacle> found = obstacles(beside.plan, beside.backend, beside.pod, beside.live);
  for (const Obstacle& one : found) {
    if (one.is_unknown()) continue;
    ++counted.witnesses;
    const Packet packet = packet_of(one.packet);
    const Outcome alone = explain(packet, usual, planned).outcome;
    const Outcome there = explain(packet, beside.pod, beside.live).outcome;
    // The proxy's tunnel is left to itself, and counts as captured.
    const bool is_for_tunnel = packet.direction == Direction::in && packet.destination_port == Config().tunnel_port;
    EXPECT_TRUE(is_captured(alone) || is_for_tunnel) << text(one);
    EXPECT_FALSE(alone == there) << text(one);
    EXPECT_EQ(sentence(alone), one.planned);
    EXPECT_EQ(sentence(there), one.instead);
  }
  if (!found.empty()) return;
  ++counted.silent;
  space::Regions regions({{usual, planned}, {beside.pod, beside.live}});
  const int enough = counted.packets + captured_each;
  for (int i = 0; i < most_tried && counted.packets < enough; ++i) {
    const Packet packet = random_packet(random, regions);
    try {
      const Outcome alone = explain(packet, usual, planned).outcome;
      if (!is_captured(alone)) continue;
      ++counted.packets;
      const Outcome there = explain(packet, beside.pod, beside.live).outcome;
      const bool by_client = !packet.source_port || beside.pod.ephemeral_ports.contains(*packet.source_port);
      ASSERT_TRUE(by_client ? alone == there : same_place(alone, there))
          << explain_words(packet) << "\n  alone: " << sentence(alone) << "\n  there: " << sentence(there);
    } catch (const Error&) {  // there is no such packet
    }
  }
}

TEST(Obstacles, AreNoneIfAndOnlyIfEveryCapturedPacketEndsAsPlanned) {
  Counted counted;
  const unsigned first = amount("SIDETRACK_OBSTACLES_FIRST", 8);
  const unsigned sets = amount("SIDETRACK_OBSTACLES_SETS", enough_for_both);
  for (unsigned seed = first; seed < first + sets; ++seed) {
    Random random(seed);
    const Beside beside = random_beside(random);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, beside.text));
    check(beside, random, counted);
    if (::testing::Test::HasFailure()) return;
  }
  fmt::print("{} sets of rules, {} of them with nothing in the way, {} captured packets; {} witnesses\n", sets,
             counted.silent, counted.packets, counted.witnesses);
  if (sets < enough_for_both) return;
  EXPECT_GT(counted.packets, 0);
  EXPECT_GT(counted.witnesses, 0);
}

}  // namespace
}  // namespace sidetrack
