// SPDX-License-Identifier: GPL-2.0-or-later
// Sets of intervals against sets of bits: every operation on sets of the numbers 0 to 15.
#include "space/interval_set.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <set>
#include <string>

namespace sidetrack::space {
namespace {

using Bits = std::uint16_t;

Intervals of(Bits bits) {
  Intervals made;
  for (unsigned value = 0; value < 16; ++value) {
    if ((bits >> value & 1) == 0) continue;
    if (!made.empty() && made.back().last + 1 == value) {
      made.back().last = value;
    } else {
      made.push_back({value, value});
    }
  }
  return made;
}

std::vector<Bits> some() {
  std::vector<Bits> all{0, 1, 2, 3, 0x8000, 0xc000, 0xffff, 0x7fff, 0xfffe, 0x5555, 0xaaaa, 0x0ff0, 0xf00f};
  std::mt19937 random(1);
  while (all.size() < 60) all.push_back(static_cast<Bits>(random() & random()));
  return all;
}

TEST(IntervalSet, EqualSetsHaveOneNumber) {
  Sets sets;
  EXPECT_EQ(sets.of({}), Sets::empty);
  std::set<Sets::Id> ids;
  for (unsigned bits = 0; bits < 0x400; ++bits) {
    const Sets::Id id = sets.of(of(static_cast<Bits>(bits)));
    EXPECT_TRUE(ids.insert(id).second) << bits;
    EXPECT_EQ(sets.of(of(static_cast<Bits>(bits))), id);
    EXPECT_TRUE(std::ranges::equal(sets.intervals(id), of(static_cast<Bits>(bits))));
  }
  EXPECT_EQ(sets.single(7), sets.of({{7, 7}}));
  EXPECT_GT(sets.bytes(), 0x400 * sizeof(Interval));
}

TEST(IntervalSet, OperationsAreThoseOfBits) {
  Sets sets;
  const auto id = [&](unsigned bits) { return sets.of(of(static_cast<Bits>(bits))); };
  for (const Bits a : some()) {
    for (unsigned value = 0; value < 18; ++value)
      EXPECT_EQ(sets.contains(id(a), value), value < 16 && (a >> value & 1) != 0);
    for (const Bits b : some()) {
      EXPECT_EQ(sets.intersection(id(a), id(b)), id(a & b)) << a << " " << b;
      EXPECT_EQ(sets.difference(id(a), id(b)), id(a & ~b)) << a << " " << b;
      EXPECT_EQ(sets.set_union(id(a), id(b)), id(a | b)) << a << " " << b;
      EXPECT_EQ(sets.is_within(id(a), id(b)), (a & ~b) == 0) << a << " " << b;
      if (b != 0) {
        EXPECT_DOUBLE_EQ(sets.share(id(a), id(b)),
                         static_cast<double>(std::popcount(static_cast<Bits>(a & b))) / std::popcount(b))
            << a << " " << b;
      }
    }
  }
}

TEST(IntervalSet, ShareOfNothingIsNothing) {
  Sets sets;
  EXPECT_EQ(sets.share(sets.single(1), Sets::empty), 0);
  EXPECT_EQ(sets.share(Sets::empty, sets.single(1)), 0);
}

TEST(IntervalSet, ManyAtOnceAreAsOneAfterTheOther) {
  Sets sets;
  const auto all = some();
  for (std::size_t first = 0; first + 5 < all.size(); ++first) {
    std::vector<Sets::Id> ids;
    Bits together = 0;
    for (std::size_t i = first + 1; i < first + 5; ++i) {
      ids.push_back(sets.of(of(all[i])));
      together = static_cast<Bits>(together | all[i]);
    }
    EXPECT_EQ(sets.set_union(ids), sets.of(of(together)));
    EXPECT_EQ(sets.difference(sets.of(of(all[first])), ids), sets.of(of(static_cast<Bits>(all[first] & ~together))));
  }
}

TEST(IntervalSet, WhatTwoListsHaveInCommon) {
  Sets sets;
  std::mt19937 random(2);
  for (int round = 0; round < 50; ++round) {
    std::vector<Bits> lists[2];
    for (auto& list : lists) {
      list.assign(1 + random() % 5, 0);
      for (unsigned value = 0; value < 16; ++value) {
        const auto in = random() % (list.size() + 1);
        if (in < list.size()) list[in] = static_cast<Bits>(list[in] | 1U << value);
      }
      std::erase(list, 0);
    }
    std::vector<Sets::Id> ids[2];
    for (int i = 0; i < 2; ++i) {
      for (const Bits bits : lists[i]) ids[i].push_back(sets.of(of(bits)));
    }
    std::string expected;
    std::string found;
    for (std::size_t i = 0; i < lists[0].size(); ++i) {
      for (std::size_t k = 0; k < lists[1].size(); ++k) {
        const Bits common = lists[0][i] & lists[1][k];
        if (common != 0)
          expected += std::to_string(i) + "," + std::to_string(k) + "=" + std::to_string(sets.of(of(common))) + " ";
      }
    }
    for (const Sets::Common& each : sets.in_common(ids[0], ids[1]))
      found += std::to_string(each.left) + "," + std::to_string(each.right) + "=" + std::to_string(each.values) + " ";
    EXPECT_EQ(found, expected);
  }
}

TEST(IntervalSet, AnyIntervalsBecomeTheirUnion) {
  EXPECT_EQ(normal({}), Intervals{});
  EXPECT_EQ(normal({{5, 7}, {1, 2}, {3, 3}, {6, 9}, {11, 11}}), (Intervals{{1, 3}, {5, 9}, {11, 11}}));
  EXPECT_EQ(normal({{1, 9}, {2, 3}, {10, 10}}), (Intervals{{1, 10}}));
  constexpr Value most = ~Value{0};
  EXPECT_EQ(normal({{0, most}, {5, 5}}), (Intervals{{0, most}}));
  EXPECT_EQ(normal({{most, most}, {0, 0}}), (Intervals{{0, 0}, {most, most}}));
}

}  // namespace
}  // namespace sidetrack::space
