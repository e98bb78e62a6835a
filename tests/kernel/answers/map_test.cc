// SPDX-License-Identifier: GPL-2.0-or-later
// The kernel agrees with the map: of each region of all packets, one at random and one at its edge; and with what an
// edit of the rules changes. $SIDETRACK_MAP_SETS is how many sets of options there are to be.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <sstream>

#include "kernel/routes.h"
#include "pod/ztunnel.h"
#include "render/effect.h"
#include "support/amount.h"
#include "support/random_options.h"
#include "support/sendable.h"
#include "support/traffic.h"
#include "walk/explain.h"

namespace sidetrack::netns {
namespace {

class Mapped : public KernelTest, public ::testing::WithParamInterface<unsigned> {
 protected:
  // Of what sockets of the pod send, those with each of the marks.
  static void expect_as_mapped(Dice& dice, const std::string& options, const std::vector<std::uint32_t>& marks);
};
INSTANTIATE_TEST_SUITE_P(, Mapped, ::testing::Range(0U, amount("SIDETRACK_MAP_SETS", 6)));

TEST_P(Mapped, EachRegionLandsWhereTheMapSays) {
  Dice dice(1000 + GetParam());
  expect_as_mapped(dice, random_options(dice), {0});
}

TEST_P(Mapped, EachRegionOfAnAmbientPodLandsWhereTheMapSays) {
  Dice dice(2000 + GetParam());
  expect_as_mapped(dice, random_ambient_options(dice), {0, ztunnel_mark});
}

void Mapped::expect_as_mapped(Dice& dice, const std::string& options, const std::vector<std::uint32_t>& marks) {
  SCOPED_TRACE(fmt::format("SIDETRACK_SEED={} {}", seed(), options));
  PodOf applied(options);
  const Pod& pod = applied.pod();
  for (const char* backend : backends) {
    SCOPED_TRACE(backend);
    applied.apply(backend, options);
    space::Regions regions({{pod.ns().run(read_pod), pod.ns().run(read_all)}});
    std::vector<space::Box> boxes;
    for (const std::uint32_t mark : marks) std::ranges::move(sendable(regions, mark), std::back_inserter(boxes));
    const space::Regions::Node root = regions.of(0, boxes);
    // By ending, way, family and mark.
    std::set<std::tuple<space::Leaf, space::Sets::Id, space::Sets::Id, space::Sets::Id>> tried;
    regions.for_each(root, [&](const space::Box& box, const space::Box&, space::Leaf leaf) {
      if (leaf == space::no_such_packet) return;
      const auto region = std::tuple(regions.by_ending(leaf), box[space::index(space::Field::way)],
                                     box[space::index(space::Field::family)], box[space::index(space::Field::mark)]);
      // Each ending twice, so that it is not the same part of it each time.
      if (!tried.insert(region).second && dice.percent(70)) return;
      for (const bool edge : {true, false}) {
        const Probe probe = probe_of(regions.universe().packet(point_of(box, regions, dice, edge)));
        const Outcome outcome = outcome_of(regions.decision(leaf).ending, probe.packet);
        EXPECT_EQ(pod.connect(probe.actor, probe.request), predicted(outcome, probe.packet.protocol, pod))
            << probe.text() << ": " << ending_text(regions.decision(leaf).ending);
      }
    });
    EXPECT_GT(tried.size(), 4U);
  }
}

bool is_known(const space::Ending& ending) {
  return ending.kind != Outcome::Kind::unknown && ending.answers != Outcome::Answers::unknown;
}

class Edited : public KernelTest, public ::testing::WithParamInterface<unsigned> {
 protected:
  // One rule of the sidecar's is changed at a random place, by the tools of its backend. Returns what was done.
  static std::string edit(const Pod& pod, const std::string& tool, Dice& dice) {
    struct Line {
      std::string table;
      std::string chain;
      unsigned number;
      std::vector<std::string> words;  // of the rule, after its chain
    };
    std::vector<Line> lines;
    for (const char* table : {"nat", "mangle"}) {
      std::map<std::string, unsigned> numbers;
      std::istringstream listed(pod.ns().must({tool, "-t", table, "-S"}));
      for (std::string line; std::getline(listed, line);) {
        std::istringstream split(line);
        std::vector<std::string> words;
        for (std::string word; split >> word;) words.push_back(word);
        if (words.front() != "-A") continue;
        lines.push_back({table, words[1], ++numbers[words[1]], {words.begin() + 2, words.end()}});
      }
    }
    if (lines.empty()) return "nothing";
    Line one = dice.one_of(lines);
    const auto call = [&](const std::string& action, unsigned number, const std::vector<std::string>& rule) {
      std::vector<std::string> words{tool, "-t", one.table, action, one.chain, std::to_string(number)};
      words.insert(words.end(), rule.begin(), rule.end());
      pod.ns().must(words);
      return fmt::format("{}", fmt::join(words, " "));
    };
    switch (dice.below(4)) {
      case 0:
        return call("-D", one.number, {});
      case 1: {  // two change places
        const Line other = dice.one_of(lines);
        if (other.table != one.table || other.chain != one.chain) return call("-D", one.number, {});
        return call("-R", one.number, other.words) + "; " + call("-R", other.number, one.words);
      }
      case 2: {  // another value
        static const std::vector<std::string> ports{"80", "443", "8080", "8081", "9443", "9"};
        static const std::vector<std::string> ids{"1000", "1337", "3000", "888"};
        for (std::size_t i = 0; i + 1 < one.words.size(); ++i) {
          if (one.words[i] == "--dport") one.words[i + 1] = dice.one_of(ports);
          if (one.words[i] == "--uid-owner" || one.words[i] == "--gid-owner") one.words[i + 1] = dice.one_of(ids);
        }
        return call("-R", one.number, one.words);
      }
      default: {
        static const std::vector<std::vector<std::string>> added{{"-p", "tcp", "--dport", "443", "-j", "RETURN"},
                                                                 {"-p", "tcp", "--dport", "8080", "-j", "ACCEPT"},
                                                                 {"-p", "tcp", "-j", "RETURN"},
                                                                 {"-j", "ACCEPT"}};
        return call("-I", one.number, dice.one_of(added));
      }
    }
  }
};
INSTANTIATE_TEST_SUITE_P(, Edited, ::testing::Range(0U, amount("SIDETRACK_MAP_EDITS", 8)));

// Where an edit is said to make a difference, it does; where it is said to make none, it does not.
TEST_P(Edited, WhatChangesIsWhatLandsDifferently) {
  Dice dice(5000 + GetParam());
  const std::string options = random_options(dice);
  const char* backend = backends[dice.below(2)];
  PodOf applied(options);
  const Pod& pod = applied.pod();
  applied.apply(backend, options);
  const PodView view = pod.ns().run(read_pod);
  const std::vector<Live> before = pod.ns().run(read_all);
  const std::string tool =
      fmt::format("{}tables-{}", dice.percent(50) ? "ip6" : "ip", backend == backends[0] ? "legacy" : "nft");
  const std::string saved = pod.ns().must({tool + "-save"});
  const std::string done = edit(pod, tool, dice);
  SCOPED_TRACE(fmt::format("SIDETRACK_SEED={} {} {}: {}", seed(), backend, options, done));
  space::Regions regions({{view, before}, {view, pod.ns().run(read_all)}});
  const std::vector<space::Box> boxes = sendable(regions);
  const space::Regions::Node was = regions.of(0, boxes);
  const space::Regions::Node is = regions.of(1, boxes);
  struct Change {
    Probe probe;
    Landing was;
    Landing is;
    std::string words;
  };
  std::vector<Change> changes;
  std::set<std::pair<space::Leaf, space::Leaf>> tried;
  regions.for_each(is, [&](const space::Box& box, const space::Box&, space::Leaf leaf) {
    if (leaf == space::no_such_packet) return;
    for (const bool edge : {true, false}) {
      const space::Point point = point_of(box, regions, dice, edge);
      const space::Leaf earlier = regions.diagrams().at(was, point);
      const bool known = !tried.insert({regions.by_ending(earlier), regions.by_ending(leaf)}).second;
      if (known && dice.percent(80)) continue;
      if (!is_known(regions.decision(earlier).ending) || !is_known(regions.decision(leaf).ending)) continue;
      const Probe probe = probe_of(regions.universe().packet(point));
      const auto of = [&](space::Leaf one) {
        return predicted(outcome_of(regions.decision(one).ending, probe.packet), probe.packet.protocol, pod);
      };
      changes.push_back({probe, of(earlier), of(leaf),
                         fmt::format("{}: {}, then {}", probe.text(), ending_text(regions.decision(earlier).ending),
                                     ending_text(regions.decision(leaf).ending))});
    }
  });
  ASSERT_GT(changes.size(), 4U);
  // Where nothing answers, a TCP packet may be reset.
  const auto expect = [&](const Change& one, const Landing& said) {
    const Landing there = pod.connect(one.probe.actor, one.probe.request);
    const bool reset = said == landed(Role::no_answer) && there == landed(Role::refused);
    EXPECT_EQ(reset ? said : there, said) << one.words;
  };
  for (const Change& one : changes) expect(one, one.is);
  pod.ns().must({tool + "-restore"}, saved);
  for (const Change& one : changes) expect(one, one.was);
}

}  // namespace
}  // namespace sidetrack::netns
