// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/duration.h"

#include <gtest/gtest.h>

namespace sidetrack {
namespace {

using namespace std::chrono_literals;

TEST(Duration, IsSaidInSecondsOrAsTheCommandLineTakesIt) {
  EXPECT_EQ(duration_words(200ms), "0.2 s");
  EXPECT_EQ(duration_words(60s), "60 s");
  EXPECT_EQ(duration_words(2min), "120 s");
  EXPECT_EQ(duration_words(5min), "5m");
  EXPECT_EQ(duration_words(100h), "100h");
  EXPECT_EQ(duration_words(1h + 5s), "1h5s");
  EXPECT_EQ(duration_words(1h + 2min + 3500ms), "1h2m3.5s");
}

}  // namespace
}  // namespace sidetrack
