// SPDX-License-Identifier: GPL-2.0-or-later
// Children are waited for, whatever becomes of them. In processes of their own, which count their children.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <thread>

#include "system/worker.h"
#include "unit/apart.h"

namespace sidetrack {
namespace {

using namespace std::chrono_literals;
using testing::apart;

// Whether this process has no child any more, also none that has ended.
std::string children() { return waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD ? "none" : "some"; }

pid_t started(void (*act)()) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  act();
  _exit(7);
}
[[noreturn]] void hang() {
  while (true) pause();
}
void end() {}

std::string status_of(std::optional<int> status) {
  if (!status) return "runs";
  return WIFSIGNALED(*status) ? "signal" : std::to_string(WEXITSTATUS(*status));
}

TEST(Children, AreWaitedFor) {
  EXPECT_EQ(apart([] {
              Child child(started(end));
              const std::string said = status_of(child.wait(Child::Clock::now() + 1min));
              const std::string again = status_of(child.wait(Child::Clock::now()));
              return said + " " + again + " " + children();
            }),
            "7 0 none");
  EXPECT_EQ(apart([] {
              Child child(started(hang));
              std::string said = status_of(child.wait(Child::Clock::now() + 1ms));
              said += " " + children();
              child.end();
              return said + " " + children();
            }),
            "runs some none");
}

TEST(Children, EndWithTheObject) {
  EXPECT_EQ(apart([] {
              try {
                const Child one(started(hang));
                Child two(started(hang));
                Child three(started(hang));
                two = std::move(three);
                throw 1;
              } catch (int) {
              }
              return children();
            }),
            "none");
}

// A program that takes the status of every child, or wants none.
TEST(Children, MayBeWaitedForByOthers) {
  EXPECT_EQ(apart([] {
              std::signal(SIGCHLD, SIG_IGN);
              Child child(started(end));
              const std::string said = status_of(child.wait(Child::Clock::now() + 1min));  // before it counts
              return said + " " + children();
            }),
            "0 none");
  EXPECT_EQ(apart([] {
              std::signal(SIGCHLD, [](int) {
                const int error = errno;
                while (waitpid(-1, nullptr, WNOHANG) > 0) {
                }
                errno = error;
              });
              Child child(started(end));
              static_cast<void>(child.wait(Child::Clock::now() + 1min));
              return children();
            }),
            "none");
}

// ---- Those of run_in_children()

TEST(Workers, LeaveNoChildBehind) {
  const auto hang_for_ever = []() -> std::string { hang(); };
  EXPECT_EQ(
      apart([&] {
        const auto results = run_in_children({hang_for_ever, [] { return std::string("a"); }, hang_for_ever}, 100ms);
        return results[1].answer + " " + children();
      }),
      "a none");
}

// One that a pod has taken over may close its end of the pipe, and go on.
TEST(Workers, OneThatIsSilentAndStaysIsEnded) {
  EXPECT_EQ(apart([&] {
              const auto silent = []() -> std::string {
                for (int file = 3; file < 64; ++file) close(file);
                hang();
              };
              const auto start = Child::Clock::now();
              const auto results = run_in_children({silent}, 1min);
              const bool soon = Child::Clock::now() - start < 30s;
              return results[0].answer + (soon ? "soon " : "late ") + children();
            }),
            "soon none");
}

// What it writes into the pipe by itself is no answer, and no refused call but of a number.
TEST(Workers, NothingButAWholeAnswerIsBelieved) {
  const auto says = [](const char* words) {
    return [words]() -> std::string {
      for (int file = 3; file < 64; ++file)
        static_cast<void>(!write(file, words, std::char_traits<char>::length(words)));
      _exit(3);
    };
  };
  const auto results = run_in_children({says("56"), says("rx"), says("r56"), says("agood"), says("")}, 1min);
  for (const auto& result : results) EXPECT_EQ(result.answer, &result == &results[3] ? "good" : "");
  EXPECT_EQ(results[0].refused_call, std::nullopt);
  EXPECT_EQ(results[1].refused_call, std::nullopt);
  EXPECT_EQ(results[2].refused_call, 56);
}

TEST(Workers, HaveNoAnswersOfOthersToRead) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "they run one by one";
  const auto pipes = []() -> std::string {
    int count = 0;
    struct stat status {};
    for (int file = 3; file < 64; ++file) count += fstat(file, &status) == 0 && S_ISFIFO(status.st_mode) ? 1 : 0;
    return std::to_string(count);
  };
  const std::string alone = run_in_children({pipes}, 1min)[0].answer;
  for (const auto& result : run_in_children({pipes, pipes, pipes, pipes}, 1min)) EXPECT_EQ(result.answer, alone);
}

}  // namespace
}  // namespace sidetrack
