// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/worker.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

namespace sidetrack {
namespace {

using namespace std::chrono_literals;

TEST(Workers, AnswerInTheOrderOfTheTasks) {
  std::vector<std::function<std::string()>> tasks;
  for (int i = 0; i < 20; ++i)
    tasks.emplace_back([i] { return std::string(static_cast<std::size_t>(i) * 10'000, 'x'); });
  const auto results = in_workers(tasks, 60s);
  ASSERT_EQ(results.size(), 20U);
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].answer.size(), i * 10'000);
    EXPECT_FALSE(results[i].timed_out);
    EXPECT_EQ(results[i].signal, 0);
    EXPECT_GT(results[i].took, 0ns);
  }
  EXPECT_TRUE(in_workers({}, 1s).empty());
}

TEST(Workers, OneThatHangsIsEndedAndTheOthersAnswer) {
  const auto hang = []() -> std::string {
    while (true) pause();
  };
  const auto results =
      in_workers({hang, [] { return std::string("a"); }, hang, hang, [] { return std::string("b"); }}, 2s);
  for (const std::size_t i : {0U, 2U, 3U}) {
    EXPECT_TRUE(results[i].timed_out);
    EXPECT_EQ(results[i].answer, "");
    EXPECT_GE(results[i].took, 2s);
  }
  EXPECT_EQ(results[1].answer, "a");
  EXPECT_EQ(results[4].answer, "b");
}

TEST(Workers, WhatGoesWrongInOneStaysThere) {
  const auto results =
      in_workers({[]() -> std::string {
                    raise(SIGKILL);
                    return "no";
                  },
                  []() -> std::string { throw std::runtime_error("no"); }, []() -> std::string { _exit(3); },
                  [] { return std::string(64U << 20, 'x'); }, [] { return std::string("good"); }},
                 60s);
  EXPECT_EQ(results[0].signal, SIGKILL);
  for (const std::size_t i : {0U, 1U, 2U}) EXPECT_EQ(results[i].answer, "");
  EXPECT_LT(results[3].answer.size(), 8U << 20) << "more is not taken";
  EXPECT_EQ(results[4].answer, "good");
}

#if !defined(SIDETRACK_SANITIZED)
TEST(Workers, AreGivenHalfAGigabyte) {
  const auto results = in_workers({[] { return std::to_string(std::string(1U << 30, 'x').size()); },
                                   [] { return std::to_string(std::string(1U << 20, 'x').size()); }},
                                  60s);
  EXPECT_EQ(results[0].answer, "");
  EXPECT_EQ(results[1].answer, "1048576");
}
#endif

}  // namespace
}  // namespace sidetrack
