// SPDX-License-Identifier: GPL-2.0-or-later
// Diagrams against packets asked one at a time. Few values on an edge, and so many that they are worked out at once.
#include <gtest/gtest.h>

#include <random>

#include "space/diagram.h"

namespace sidetrack::space {
namespace {

constexpr unsigned ports = 48;  // from 1 on: what is above is as the last one
constexpr unsigned uids = 6;

class OfDiagrams : public ::testing::Test {
 protected:
  OfDiagrams() {
    for (std::size_t i = 0; i < field_count; ++i)
      whole_[i] = sets_.of({universe_.domain(static_cast<Field>(i), Family::ipv4)});
    whole_[index(Field::family)] = sets_.single(value_of(Family::ipv4));
  }

  [[nodiscard]] Box box(const Interval& of_ports, const Interval& of_uids) {
    Box made = whole_;
    made[index(Field::destination_port)] = sets_.of({of_ports});
    made[index(Field::uid)] = sets_.of({of_uids});
    return made;
  }
  [[nodiscard]] static Point point(Value port, Value uid) {
    Point made{};
    made[index(Field::destination_port)] = port;
    made[index(Field::uid)] = uid;
    return made;
  }
  // What is known of each packet, as one value for each port and uid.
  using Known = std::vector<Leaf>;
  [[nodiscard]] Known known(Diagrams::Node root) {
    Known all;
    each([&](Value port, Value uid) { all.push_back(diagrams_.at(root, point(port, uid))); });
    return all;
  }
  template <typename Use>
  static void each(const Use& use) {
    for (unsigned port = 1; port <= ports; ++port) {
      for (unsigned uid = 0; uid < uids; ++uid) use(port, uid);
    }
  }
  // Of so many random boxes, laid where nothing is known yet.
  Diagrams::Node some(unsigned seed, int count, Leaf leaves, Known& expected) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned end) { return static_cast<unsigned>(random() % end); };
    expected.assign(ports * uids, uncovered);
    Diagrams::Node root = diagrams_.nothing();
    for (int i = 0; i < count; ++i) {
      const unsigned port = 1 + below(ports);
      const unsigned uid = below(uids);
      const Interval of_ports{port, std::min(ports, port + below(4))};
      const Interval of_uids{uid, std::min(uids - 1, uid + below(3))};
      const Leaf leaf = 1 + below(leaves);
      root = diagrams_.with(root, box(of_ports, of_uids), leaf);
      std::size_t at = 0;
      each([&](Value one, Value owner) {
        Leaf& there = expected[at++];
        const bool inside =
            of_ports.first <= one && one <= of_ports.last && of_uids.first <= owner && owner <= of_uids.last;
        if (inside && there == uncovered) there = leaf;
      });
    }
    return root;
  }

  Sets sets_;
  const PodView pod_;
  const PodView* const pods_[1]{&pod_};
  const Universe universe_{pods_, {}};
  Diagrams diagrams_{universe_, sets_};
  Box whole_{};
};

TEST_F(OfDiagrams, KnowOfEachPacketWhatWasSaidFirst) {
  for (const unsigned seed : {1U, 2U, 3U}) {
    Known expected;
    const Diagrams::Node root = some(seed, 40, 30, expected);
    EXPECT_EQ(known(root), expected);
    // Each part once, and all of them.
    double share = 0;
    diagrams_.for_each(root, whole_, [&](const Box& part, Leaf leaf) {
      double of_part = 1;
      for (const Field field : {Field::family, Field::destination_port, Field::uid})
        of_part *= sets_.share(part[index(field)], whole_[index(field)]);
      share += of_part;
      const Point one = [&] {
        Point first{};
        for (std::size_t i = 0; i < field_count; ++i) first[i] = sets_.intervals(part[i]).front().first;
        return first;
      }();
      EXPECT_EQ(diagrams_.at(root, one), leaf);
    });
    EXPECT_NEAR(share, 1, 1e-9);
  }
}

TEST_F(OfDiagrams, OfEqualPacketsAreEqual) {
  Diagrams::Node one = diagrams_.nothing();
  for (Value port = 1; port <= 20; ++port) one = diagrams_.with(one, box({port, port}, {0, 2}), 7);
  const Diagrams::Node other = diagrams_.with(diagrams_.nothing(), box({1, 20}, {0, 2}), 7);
  EXPECT_EQ(one, other);
  EXPECT_EQ(diagrams_.with(other, box({3, 9}, {1, 1}), 7), other);
  EXPECT_EQ(diagrams_.with(other, box({3, 9}, {1, 1}), 8), other) << "what is known stays";
  EXPECT_NE(diagrams_.whole(7), other);
  EXPECT_EQ(diagrams_.whole(7), diagrams_.mapped(diagrams_.nothing(), [](Leaf) { return Leaf{7}; }));
}

TEST_F(OfDiagrams, LaidOverEachOtherHaveWhatEachHas) {
  for (const int count : {6, 60}) {  // few values on an edge; many
    Known of_one;
    Known of_other;
    const Diagrams::Node one = some(11, count, 40, of_one);
    const Diagrams::Node other = some(12, count, 40, of_other);
    const Diagrams::Node both = diagrams_.combined(one, other, [](Leaf a, Leaf b) { return a * 100 + b; });
    Known expected;
    for (std::size_t i = 0; i < of_one.size(); ++i) expected.push_back(of_one[i] * 100 + of_other[i]);
    EXPECT_EQ(known(both), expected) << count;

    // Within a box, where nothing is known yet, and each leaf changed.
    const Interval of_ports{10, 39};
    const Interval of_uids{1, 4};
    const Diagrams::Node more = diagrams_.with(one, box(of_ports, of_uids), other, [](Leaf leaf) { return leaf + 50; });
    std::size_t at = 0;
    each([&](Value port, Value uid) {
      const bool inside =
          of_ports.first <= port && port <= of_ports.last && of_uids.first <= uid && uid <= of_uids.last;
      const bool is_new = inside && of_one[at] == uncovered && of_other[at] != uncovered;
      EXPECT_EQ(diagrams_.at(more, point(port, uid)), is_new ? of_other[at] + 50 : of_one[at]);
      ++at;
    });
  }
}

TEST_F(OfDiagrams, TellWhatIsUncoveredOrAllowed) {
  Diagrams::Node root = diagrams_.with(diagrams_.nothing(), box({1, 10}, {0, 5}), 2);
  root = diagrams_.with(root, box({11, 20}, {0, 2}), 3);
  EXPECT_FALSE(diagrams_.first_uncovered(root, box({1, 10}, {0, 5})));
  EXPECT_FALSE(diagrams_.first_uncovered(root, box({5, 20}, {1, 2})));
  const auto open = diagrams_.first_uncovered(root, box({5, 20}, {2, 4}));
  ASSERT_TRUE(open);
  EXPECT_EQ((*open)[index(Field::destination_port)], sets_.of({{11, 20}}));
  EXPECT_EQ((*open)[index(Field::uid)], sets_.of({{3, 4}}));

  const auto is = [](Leaf wanted) { return [wanted](Leaf leaf) { return leaf == wanted; }; };
  EXPECT_TRUE(diagrams_.is_within(root, box({3, 10}, {0, 5}), is(2)));
  EXPECT_FALSE(diagrams_.is_within(root, box({3, 11}, {0, 5}), is(2)));
  EXPECT_TRUE(diagrams_.is_within(root, box({11, 12}, {0, 2}), is(3)));
  EXPECT_FALSE(diagrams_.is_within(root, box({11, 12}, {0, 3}), is(3)));

  EXPECT_EQ(diagrams_.allowed(root, box({2, 2}, {0, 3}), Field::destination_port, is(2)), sets_.of({{1, 10}}));
  EXPECT_EQ(diagrams_.allowed(root, box({11, 11}, {1, 1}), Field::uid, is(3)), sets_.of({{0, 2}}));
  EXPECT_EQ(diagrams_.allowed(root, box({9, 12}, {1, 1}), Field::uid, is(3)), Sets::empty);
  EXPECT_EQ(diagrams_.allowed(root, box({9, 12}, {1, 1}), Field::uid, [](Leaf leaf) { return leaf != uncovered; }),
            sets_.of({{0, 2}}));
}

}  // namespace
}  // namespace sidetrack::space
