// SPDX-License-Identifier: GPL-2.0-or-later
// Killed at every system call, and every system call that talks to the kernel's tables failing in turn: the old rules
// or the new ones, never a mixture, and the next run converges.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <sstream>

#include "kernel_test.h"
#include "listing.h"
#include "network.h"
#include "traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::AnyOf;
using Atoms = std::map<std::string, std::string>;

class Crash : public KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ip(ns, "link set lo up\n");
    trust_addresses(ns);
    apply(older);
    apply(newer);
    new_atoms = atoms(ns);
    apply(older);
    old_atoms = atoms(ns);
  }

  std::vector<std::string> words(const std::vector<std::string>& options) const {
    std::vector<std::string> result{program_under_test(), "apply",     "--backend", GetParam(),
                                    "--ip-families",      "ipv4,ipv6", "-i",        "*"};
    result.insert(result.end(), options.begin(), options.end());
    return result;
  }
  void apply(const std::vector<std::string>& options) const { ns.must(words(options)); }

  // The system calls of an apply over the older rules, with how often each is made.
  std::map<std::string, int> calls() const {
    std::vector<std::string> traced{"strace", "-qq", "-o", "/dev/fd/1"};
    for (const std::string& word : words(newer)) traced.push_back(word);
    std::istringstream lines(ns.must(traced));
    std::map<std::string, int> counts;
    for (std::string line; std::getline(lines, line);) {
      const std::size_t end = line.find('(');
      if (end != std::string::npos && line.find("execve(") != 0) ++counts[line.substr(0, end)];
    }
    apply(older);
    return counts;
  }

  // An apply of the newer rules over the older ones in which the nth call of that name meets with `fate`.
  Output disturbed(const std::string& call, int nth, const std::string& fate) const {
    std::vector<std::string> traced{"strace",    "-qq", "-o",
                                    "/dev/null", "-e",  "inject=" + call + ":" + fate + ":when=" + std::to_string(nth)};
    for (const std::string& word : words(newer)) traced.push_back(word);
    return ns.program(traced);
  }

  // Each unit is as it was or as it was to be.
  void expect_no_mixture(const std::string& what) const {
    for (const auto& [name, text] : atoms(ns)) {
      const auto before = old_atoms.find(name);
      const auto after = new_atoms.find(name);
      const bool is_old = before != old_atoms.end() && text == before->second;
      const bool is_new = after != new_atoms.end() && text == after->second;
      EXPECT_TRUE(is_old || is_new) << what << ": " << name << "\n" << text;
    }
  }

  const std::vector<std::string> older{"-b", "80", "-p", "16001"};
  const std::vector<std::string> newer{"-b", "*", "-m", "TPROXY", "-d", "15021"};
  Namespace ns;
  Atoms old_atoms;
  Atoms new_atoms;
};

TEST_P(Crash, KilledAtEverySystemCall) {
  int kills = 0;
  for (const auto& [call, count] : calls()) {
    for (int nth = 1; nth <= count; ++nth) {
      const std::string what = "killed at " + call + " " + std::to_string(nth);
      const Output output = disturbed(call, nth, "signal=SIGKILL");
      if (output.exit_code == 128 + SIGKILL) ++kills;
      expect_no_mixture(what);
      const Output again = ns.program(words(newer));
      EXPECT_EQ(again.exit_code, 0) << what << "\n" << again.err;
      EXPECT_EQ(atoms(ns), new_atoms) << what;
      apply(older);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(kills, 20);
}

TEST_P(Crash, AskedToEndAtEverySystemCall) {
  for (const auto& [call, count] : calls()) {
    for (int nth = 1; nth <= count; ++nth) {
      const std::string what = "SIGTERM at " + call + " " + std::to_string(nth);
      ASSERT_THAT(disturbed(call, nth, "signal=SIGTERM").exit_code, AnyOf(0, 128 + SIGTERM)) << what;
      ASSERT_THAT(atoms(ns), AnyOf(old_atoms, new_atoms)) << what;  // as a whole
      apply(older);
    }
  }
}

TEST_P(Crash, EveryCallToTheKernelFailing) {
  int failures = 0;
  const auto made = calls();
  for (const char* call : {"socket", "bind", "setsockopt", "getsockopt", "sendto", "sendmsg", "recvfrom", "recvmsg"}) {
    const auto found = made.find(call);
    if (found == made.end()) continue;
    for (const char* error : {"EPERM", "ENOMEM", "EBUSY", "EAGAIN", "ENOENT", "EINVAL"}) {
      for (int nth = 1; nth <= found->second; ++nth) {
        const std::string what = std::string(call) + " " + std::to_string(nth) + " fails with " + error;
        const Output output = disturbed(call, nth, std::string("error=") + error);
        expect_no_mixture(what);
        if (output.exit_code == 0) {
          EXPECT_EQ(atoms(ns), new_atoms) << what;
        } else {
          ++failures;
          EXPECT_LE(output.exit_code, 5) << what << "\n" << output.err;
          EXPECT_NE(output.err.find("error"), std::string::npos) << what << "\n" << output.err;
        }
        apply(older);
        EXPECT_EQ(atoms(ns), old_atoms) << what;
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(failures, 10);
}

INSTANTIATE_TEST_SUITE_P(, Crash, ::testing::ValuesIn(backends), backend_name);

}  // namespace
}  // namespace sidetrack::netns
