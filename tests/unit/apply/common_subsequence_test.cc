// SPDX-License-Identifier: GPL-2.0-or-later
#include "apply/common_subsequence.h"

#include <gmock/gmock.h>

#include <random>
#include <string>

#include "unit/fewest_changes.h"

namespace sidetrack {
namespace {

using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;
using ::testing::IsEmpty;

Pairs between(const std::string& before, const std::string& after) {
  return common_subsequence(before.size(), after.size(),
                            [&](std::size_t x, std::size_t y) { return before[x] == after[y]; });
}

// Tells whether each pair is of the same letter, and behind the pair before it.
bool is_common(const Pairs& pairs, const std::string& before, const std::string& after) {
  std::size_t x = 0, y = 0;
  for (const auto& [i, j] : pairs) {
    if (i < x || j < y || before.at(i) != after.at(j)) return false;
    x = i + 1, y = j + 1;
  }
  return true;
}

TEST(CommonSubsequence, OfNothingIsEmpty) { EXPECT_THAT(between("", ""), IsEmpty()); }

TEST(CommonSubsequence, IsTheLongest) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::string sides[2];
    for (std::string& side : sides) {
      side.resize(random() % 12);
      for (char& letter : side) letter = static_cast<char>('a' + random() % 3);
    }
    const auto& [before, after] = sides;
    const Pairs common = between(before, after);
    ASSERT_TRUE(is_common(common, before, after)) << before << " " << after;
    ASSERT_EQ(before.size() + after.size() - 2 * common.size(), testing::fewest_changes(before, after))
        << before << " " << after;
  }
}

TEST(CommonSubsequence, OfTooManyPairsIsWhatIsBeforeAndBehindThem) {
  const auto around = [](std::size_t count) { return "a" + std::string(count, 'x') + "b" + std::string(count, 'x'); };
  const std::string before = "start" + around(500) + "end", after = "start-" + around(500) + "-end";
  EXPECT_EQ(between(before, after).size(), before.size());
  const std::string longer = "start" + around(2000) + "end", other = "start-" + around(2000) + "-end";
  const Pairs common = between(longer, other);
  EXPECT_TRUE(is_common(common, longer, other));
  EXPECT_EQ(common.size(), std::string("startend").size());
}

}  // namespace
}  // namespace sidetrack
