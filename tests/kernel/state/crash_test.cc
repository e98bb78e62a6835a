// SPDX-License-Identifier: GPL-2.0-or-later
// Killed or asked to end at every system call, and every call that talks to the kernel failing in turn, in every
// command that writes. All tables of both families, all backends and the routes are looked at together: the old state
// or the new one, or an error that says what stands; and the next run ends right. $SIDETRACK_CRASH_STRIDE=1: at all
// calls everywhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <sstream>

#include "support/amount.h"
#include "support/step.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Only these change what others see, or depend on what others did: at all other calls the state is that of one of them.
constexpr const char* kernel_calls[] = {"socket",  "bind",     "setsockopt", "getsockopt", "sendto",
                                        "sendmsg", "recvfrom", "recvmsg",    "flock",      "rt_sigprocmask"};

class Crash : public StepTest {
 protected:
  // The system calls of the command, with how often each is made.
  std::map<std::string, int> calls() {
    std::vector<std::string> traced{"strace", "-qq", "-o", "/dev/fd/1"};
    for (const std::string& word : words()) traced.push_back(word);
    std::istringstream lines(ns.must(traced));
    std::map<std::string, int> counts;
    for (std::string line; std::getline(lines, line);) {
      const std::size_t end = line.find('(');
      if (end != std::string::npos && line.find("execve(") != 0) ++counts[line.substr(0, end)];
    }
    restart();
    return counts;
  }
  // All of them in the usual case, else those that matter.
  std::map<std::string, int> calls_to_be_disturbed() {
    auto counts = calls();
    const bool all = stays();
    std::erase_if(counts, [&](const auto& call) {
      return !all && std::ranges::find(kernel_calls, call.first) == std::end(kernel_calls);
    });
    return counts;
  }

  // Which of the calls of a name are disturbed: all in the usual case, else some.
  static int stride() { return stays() ? 1 : fault_stride(); }

  // The command, in which the nth call of that name meets with `fate`.
  Output disturbed(const std::string& call, int nth, const std::string& fate) const {
    std::vector<std::string> traced{"strace",    "-qq", "-o",
                                    "/dev/null", "-e",  "inject=" + call + ":" + fate + ":when=" + std::to_string(nth)};
    for (const std::string& word : words()) traced.push_back(word);
    count_fault();
    return ns.program(traced);
  }
};

TEST_P(Crash, KilledAtEverySystemCall) {
  int kills = 0;
  for (const auto& [call, count] : calls_to_be_disturbed()) {
    for (int nth = 1; nth <= count; nth += stride()) {
      const std::string what = "killed at " + call + " " + std::to_string(nth);
      const Output output = disturbed(call, nth, "signal=SIGKILL");
      if (output.exit_code == 128 + SIGKILL) ++kills;
      // Each table is as it was or as it was to be.
      for (const auto& [name, text] : state(ns)) {
        if (name == "routing") continue;  // a rule or a route at a time
        const auto before = old_state.find(name);
        const auto after = new_state.find(name);
        const bool is_old = before != old_state.end() && text == before->second;
        const bool is_new = after != new_state.end() && text == after->second;
        EXPECT_TRUE(is_old || is_new) << what << ": " << name << "\n" << text;
      }
      if (nth % 2 == 0) ns.must({program_under_test(), "clean"});  // the next run may be either
      const Output again = ns.program(words());
      EXPECT_EQ(again.exit_code, 0) << what << "\n" << again.err;
      EXPECT_EQ(state(ns), new_state) << what;
      restart();
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(kills, 20 / stride());
}

TEST_P(Crash, AskedToEndAtEverySystemCall) {
  for (const auto& [call, count] : calls_to_be_disturbed()) {
    for (int nth = 1; nth <= count; nth += stride()) {
      const std::string what = "SIGTERM at " + call + " " + std::to_string(nth);
      ASSERT_THAT(disturbed(call, nth, "signal=SIGTERM").exit_code, AnyOf(0, 128 + SIGTERM)) << what;
      const State now = state(ns);
      ASSERT_TRUE(now == old_state || now == new_state) << what << "\n" << ::testing::PrintToString(now);
      if (now == old_state) continue;
      restart();
    }
  }
}

TEST_P(Crash, EveryCallToTheKernelFailing) {
  int failures = 0;
  const auto made = calls();
  const std::vector<const char*> errors =
      stays() ? std::vector{"EPERM", "ENOMEM", "EAGAIN", "ENOENT", "EINVAL"} : std::vector{"EPERM", "ENOMEM"};
  for (const char* call : kernel_calls) {
    const auto found = made.find(call);
    if (found == made.end()) continue;
    for (const char* error : errors) {
      for (int nth = 1; nth <= found->second; nth += stride()) {
        const std::string what = std::string(call) + " " + std::to_string(nth) + " fails with " + error;
        const Output output = disturbed(call, nth, std::string("error=") + error);
        if (output.exit_code != 0) ++failures;
        // The error that it was, and no other: what to do about a missing right is no remedy for missing memory.
        if (std::string_view(error) != "EPERM") {
          EXPECT_THAT(output.err, Not(HasSubstr("(EPERM)"))) << what;
        }
        const State now = judge(output, what);
        if (now != old_state) restart();
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(failures, 10 / stride());
}

INSTANTIATE_TEST_SUITE_P(, Crash, ::testing::ValuesIn(steps()), step_name);

}  // namespace
}  // namespace sidetrack::netns
