// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/worker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <thread>

namespace sidetrack {
namespace {

using namespace std::chrono_literals;

TEST(Workers, AnswerInTheOrderOfTheTasks) {
  std::vector<std::function<std::string()>> tasks;
  for (int i = 0; i < 20; ++i)
    tasks.emplace_back([i] { return std::string(static_cast<std::size_t>(i) * 10'000, 'x'); });
  const auto results = run_in_children(tasks, 60s);
  ASSERT_EQ(results.size(), 20U);
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].answer.size(), i * 10'000);
    EXPECT_FALSE(results[i].timed_out);
    EXPECT_EQ(results[i].signal, 0);
    EXPECT_GT(results[i].took, 0ns);
  }
  EXPECT_TRUE(run_in_children({}, 1s).empty());
}

TEST(Workers, OneThatHangsIsEndedAndTheOthersAnswer) {
  const auto hang = []() -> std::string {
    while (true) pause();
  };
  const auto results =
      run_in_children({hang, [] { return std::string("a"); }, hang, hang, [] { return std::string("b"); }}, 2s);
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
      run_in_children({[]() -> std::string {
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

// The first one has begun when there is no descriptor left for the second.
TEST(Workers, ThatCannotAllBeginAreEnded) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "they are begun one by one";
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const auto hang = []() -> std::string {
    while (true) pause();
  };
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit two_more{static_cast<rlim_t>(ends[1]) + 3, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &two_more), 0);
  std::string said = "no error";
  try {
    static_cast<void>(run_in_children({hang, hang}, std::chrono::hours(1)));
  } catch (const std::exception& error) {
    said = error.what();
  }
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(said, "cannot make a pipe: Too many open files (EMFILE)");
  close(ends[1]);
  pollfd held{ends[0], POLLIN, 0};
  EXPECT_EQ(poll(&held, 1, 10'000), 1) << "the one that has begun holds the other end still";
  close(ends[0]);
}

#if !defined(SIDETRACK_SANITIZED)
TEST(Workers, AreGivenHalfAGigabyte) {
  const auto results = run_in_children({[] { return std::to_string(std::string(1U << 30, 'x').size()); },
                                        [] { return std::to_string(std::string(1U << 20, 'x').size()); }},
                                       60s);
  EXPECT_EQ(results[0].answer, "");
  EXPECT_EQ(results[1].answer, "1048576");
}
#endif

}  // namespace
}  // namespace sidetrack
