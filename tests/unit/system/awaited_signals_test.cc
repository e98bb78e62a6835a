// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "system/signals.h"

namespace sidetrack {
namespace {

using Clock = AwaitedSignals::Clock;

// What the calling thread holds back, and what each signal does: as long as AwaitedSignals lives, and before and after.
std::string dispositions() {
  sigset_t held;
  sigprocmask(SIG_BLOCK, nullptr, &held);
  std::string all;
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    struct sigaction action {};
    const bool is_known = sigaction(signal, nullptr, &action) == 0;
    const char what = !is_known ? '-' : action.sa_handler == SIG_DFL ? 'd' : action.sa_handler == SIG_IGN ? 'i' : 'h';
    all += what;
    all += sigismember(&held, signal) == 1 ? 'H' : ' ';
  }
  return all;
}

TEST(AwaitedSignals, LeaveAllSignalsAsTheyWere) {
  for (const auto which : {AwaitedSignals::Which::polite, AwaitedSignals::Which::all}) {
    const std::string before = dispositions();
    {
      const AwaitedSignals awaited(which);
      EXPECT_NE(dispositions(), before);
    }
    EXPECT_EQ(dispositions(), before);
  }
}

TEST(AwaitedSignals, HoldThoseThatAreAskedFor) {
  struct Case {
    int signal;
    bool politely;
    bool all;
  };
  const Case cases[] = {{SIGTERM, true, true},   {SIGINT, true, true},   {SIGHUP, true, true},
                        {SIGQUIT, true, true},   {SIGUSR1, false, true}, {SIGALRM, false, true},
                        {SIGRTMAX, false, true}, {SIGSYS, false, false}, {SIGCHLD, false, false},
                        {SIGCONT, false, false}};
  for (const Case& one : cases) {
    for (const auto which : {AwaitedSignals::Which::polite, AwaitedSignals::Which::all}) {
      const AwaitedSignals awaited(which);
      sigset_t held;
      sigprocmask(SIG_BLOCK, nullptr, &held);
      EXPECT_EQ(sigismember(&held, one.signal) == 1, which == AwaitedSignals::Which::all ? one.all : one.politely)
          << signal_name(one.signal);
    }
  }
}

TEST(AwaitedSignals, OneThatCameBeforeEndsTheWaiting) {
  AwaitedSignals awaited;
  raise(SIGTERM);
  const AwaitedSignals::Woken woken = awaited.wait(Clock::now() + std::chrono::hours(1));
  EXPECT_EQ(woken.signal, SIGTERM);
  EXPECT_FALSE(woken.readable);
}

TEST(AwaitedSignals, ThoseOfAnotherObjectAreForgotten) {
  {
    AwaitedSignals awaited;
    raise(SIGHUP);
    EXPECT_EQ(awaited.wait(Clock::now() + std::chrono::hours(1)).signal, SIGHUP);
  }
  AwaitedSignals awaited;
  EXPECT_EQ(awaited.wait(Clock::now()).signal, 0);
}

TEST(AwaitedSignals, IgnoredOnesStayIgnored) {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  {
    AwaitedSignals awaited;
    raise(SIGHUP);
    EXPECT_EQ(awaited.wait(Clock::now()).signal, 0);
  }
  std::signal(SIGHUP, before);
}

TEST(AwaitedSignals, TheTimeAndWhatCanBeReadEndTheWaiting) {
  AwaitedSignals awaited;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const AwaitedSignals::Woken late = awaited.wait(Clock::now() + std::chrono::milliseconds(1), ends[0]);
  EXPECT_EQ(late.signal, 0);
  EXPECT_FALSE(late.readable);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  EXPECT_TRUE(awaited.wait(Clock::now() + std::chrono::hours(1), ends[0]).readable);
  // What can be read all the time keeps away neither the end nor a signal.
  const AwaitedSignals::Woken over = awaited.wait(Clock::now(), ends[0]);
  EXPECT_EQ(over.signal, 0);
  EXPECT_FALSE(over.readable);
  raise(SIGTERM);
  const AwaitedSignals::Woken asked = awaited.wait(Clock::now() + std::chrono::hours(1), ends[0]);
  EXPECT_EQ(asked.signal, SIGTERM);
  EXPECT_FALSE(asked.readable);
  close(ends[0]);
  close(ends[1]);
}

TEST(AwaitedSignals, AreNamed) {
  EXPECT_EQ(signal_name(SIGTERM), "SIGTERM");
  EXPECT_EQ(signal_name(40), "signal 40");
}

}  // namespace
}  // namespace sidetrack
