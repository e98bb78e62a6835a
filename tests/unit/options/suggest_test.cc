// SPDX-License-Identifier: GPL-2.0-or-later
// Which option is meant by a word that is none.
#include "options/suggest.h"

#include <gtest/gtest.h>

namespace sidetrack::options {
namespace {

std::string meant(std::string_view word, const std::vector<std::string_view>& candidates) {
  return std::string(nearest(word, candidates).value_or("nothing"));
}

TEST(Suggest, OneOrTwoChangesAreASlip) {
  const std::vector<std::string_view> names{"apply", "render", "verify"};
  EXPECT_EQ(meant("aply", names), "apply");     // one is missing
  EXPECT_EQ(meant("applly", names), "apply");   // one too many
  EXPECT_EQ(meant("bpply", names), "apply");    // one is another
  EXPECT_EQ(meant("appyl", names), "apply");    // two have changed places
  EXPECT_EQ(meant("paply", names), "apply");    // the first two
  EXPECT_EQ(meant("bppyl", names), "apply");    // two changes
  EXPECT_EQ(meant("bqpyl", names), "nothing");  // three
  EXPECT_EQ(meant("redner", names), "render");
  EXPECT_EQ(meant("xendex", names), "render");
  EXPECT_EQ(meant("xxndex", names), "nothing");
}

TEST(Suggest, ALongWordMayHaveAQuarterOfItChanged) {
  const std::vector<std::string_view> names{"inbound-interception-mode"};
  EXPECT_EQ(meant("inbound-interception-m", names), "inbound-interception-mode");     // three of 22
  EXPECT_EQ(meant("xxxxxxd-interception-mode", names), "inbound-interception-mode");  // six of 25
  EXPECT_EQ(meant("xxxxxxx-interception-mode", names), "nothing");
}

TEST(Suggest, TheNearestIsTaken) {
  EXPECT_EQ(meant("verifi", {"verity", "verify"}), "verify");
  EXPECT_EQ(meant("verifi", {"verify", "verity"}), "verify");
  EXPECT_EQ(meant("ab", {"abcd", "abc"}), "abc");
  EXPECT_EQ(meant("mab", {"map", "mat"}), "map");  // the first of those that are as near
}

TEST(Suggest, WhatHasNothingInCommonIsNotMeant) {
  EXPECT_EQ(meant("ab", {"cd"}), "nothing");
  EXPECT_EQ(meant("a", {"b"}), "nothing");
  EXPECT_EQ(meant("", {"b", "c"}), "nothing");
  EXPECT_EQ(meant("a", {"ab"}), "ab");
}

TEST(Suggest, ABeginningIsMeantIfThereIsOneSuchWord) {
  EXPECT_EQ(meant("comp", {"completion", "clean"}), "completion");
  EXPECT_EQ(meant("c", {"completion", "cleanest"}), "nothing");
  EXPECT_EQ(meant("omp", {"completion"}), "nothing");
}

TEST(Suggest, AWordLongerThanAnyOptionIsNotCompared) {
  const std::string longest(64, 'a');
  EXPECT_EQ(meant(longest, {longest}), longest);
  EXPECT_EQ(meant(longest + "a", {longest}), "nothing");
}

}  // namespace
}  // namespace sidetrack::options
