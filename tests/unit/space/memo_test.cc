// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/memo.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace sidetrack::space {
namespace {

// Many numbers, few, and many again: what was forgotten stays so, wherever it was kept.
TEST(Memo, HoldsWhatWasAddedSinceItWasCleared) {
  std::mt19937 random(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same in each run
  Memo memo;
  EXPECT_EQ(memo.find(0), nullptr);
  for (const std::size_t count : {1U, 31U, 32U, 5000U, 3U, 40U, 700U, 0U, 2U}) {
    std::map<std::uint64_t, std::uint32_t> expected;
    while (expected.size() < count) {
      const std::uint64_t key = random() % 10000;
      if (expected.emplace(key, static_cast<std::uint32_t>(expected.size())).second) memo.add(key, expected[key]);
    }
    EXPECT_EQ(memo.size(), count);
    for (std::uint64_t key = 0; key < 10000; ++key) {
      const std::uint32_t* found = memo.find(key);
      const auto known = expected.find(key);
      ASSERT_EQ(found != nullptr, known != expected.end()) << count << " " << key;
      if (found != nullptr) {
        EXPECT_EQ(*found, known->second);
      }
    }
    memo.clear();
    EXPECT_EQ(memo.size(), 0U);
    EXPECT_EQ(memo.find(1), nullptr);
  }
}

}  // namespace
}  // namespace sidetrack::space
