// SPDX-License-Identifier: GPL-2.0-or-later
// What cannot be done is said by exit code and in words, and leaves the namespace as it was.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>

#include "support/kernel_test.h"
#include "support/listing.h"
#include "support/namespace.h"
#include "support/network.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

class Refusals : public KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ip(ns, "link set lo up\n");
  }

  // Options that every backend takes, with rules in place before, or without.
  void program_something() const {
    const Output output =
        ns.program({program_under_test(), "apply", "--backend", GetParam(), "--ip-families", "ipv4,ipv6", "-b", "80"});
    ASSERT_EQ(output.exit_code, 0) << output.err;
  }

  // Runs it, expects that exit code and nothing changed, and returns what it said.
  std::string refused(int exit_code, std::vector<std::string> words, const std::vector<std::string>& environment = {},
                      Identity identity = {}) const {
    const std::string before = listing(ns);
    const Output output = ns.program(words, {}, environment, identity);
    EXPECT_EQ(output.exit_code, exit_code) << output.out << output.err;
    EXPECT_EQ(output.out, "");
    EXPECT_EQ(listing(ns), before);
    return output.err;
  }

  std::vector<std::string> apply(std::vector<std::string> options = {"-i", "*", "-b", "*"}) const {
    std::vector<std::string> words{program_under_test(), "apply",         "--backend",
                                   GetParam(),           "--ip-families", "ipv4,ipv6"};
    words.insert(words.end(), options.begin(), options.end());
    return words;
  }

  Namespace ns;
};

TEST_P(Refusals, BadInput) {
  program_something();
  EXPECT_THAT(refused(2, apply({"-p", "70000"})), AllOf(HasSubstr("--envoy-port"), HasSubstr("70000")));
  EXPECT_THAT(refused(2, apply({"-x", "10.0.0.0/33"})), HasSubstr("10.0.0.0/33"));
  EXPECT_THAT(refused(2, apply({"-c", "a-name-that-is-too-long"})), HasSubstr("a-name-that-is-too-long"));
  EXPECT_THAT(refused(2, apply({"-t", "0x1ffffffff"})), HasSubstr("0x1ffffffff"));
  EXPECT_THAT(refused(2, apply({"-b", "CMakeLists.txt"})), AllOf(HasSubstr("CMakeLists.txt"), HasSubstr("quote")));
  EXPECT_THAT(refused(2, apply({"--no-such-flag"})), HasSubstr("--no-such-flag"));
  EXPECT_THAT(refused(2, apply(), {"ISTIO_OUTBOUND_OWNER_GROUPS=no-such-group"}), HasSubstr("no-such-group"));
  EXPECT_THAT(refused(2, apply(), {"DROP_INVALID=perhaps"}), AllOf(HasSubstr("DROP_INVALID"), HasSubstr("perhaps")));
  EXPECT_THAT(refused(2, apply({"--netns", "no-such-namespace"})), HasSubstr("no-such-namespace"));
  EXPECT_THAT(refused(2, apply({"--netns", "/dev/null"})), HasSubstr("/dev/null"));
}

TEST_P(Refusals, WithoutTheCapability) {
  program_something();
  EXPECT_THAT(refused(4, apply(), {}, Identity{1000, 1000}), HasSubstr("CAP_NET_ADMIN"));
}

TEST_P(Refusals, WithNetAdminAlone) {
  std::vector<std::string> words{"setpriv", "--bounding-set", "-all,+net_admin"};
  const std::vector<std::string> program = apply();
  words.insert(words.end(), program.begin(), program.end());
  if (std::string_view(GetParam()) == "iptables-legacy") {
    EXPECT_THAT(refused(4, words), HasSubstr("CAP_NET_RAW"));
  } else {
    EXPECT_EQ(ns.program(words).exit_code, 0);
  }
}

// libiptc would call abort().
TEST_P(Refusals, AFilterAroundTheProgramMayRefuseFcntl) {
  if (GetParam() != std::string_view("iptables-legacy")) return;
  std::vector<std::string> words{"strace", "-qq", "-o", "/dev/null", "-e", "inject=fcntl:error=EPERM"};
  for (const std::string& word : apply()) words.push_back(word);
  EXPECT_THAT(refused(4, words), HasSubstr("fcntl(F_SETFD) is refused"));
}

TEST_P(Refusals, ARouteThatTheKernelRefuses) {
  program_something();
  ip(ns, "link set lo down\n");
  EXPECT_THAT(refused(1, apply({"-b", "*", "-m", "TPROXY"})), HasSubstr("lo"));
}

TEST_P(Refusals, StandardOutputThatIsFull) {
  const Output output =
      ns.program({"sh", "-c", std::string(program_under_test()) + " render --ip-families ipv4 >/dev/full"});
  EXPECT_EQ(output.exit_code, 1);
  EXPECT_THAT(output.err, HasSubstr("standard output"));
}

INSTANTIATE_TEST_SUITE_P(, Refusals, ::testing::ValuesIn(backends), backend_name);

// The lock of legacy iptables.
class Lock : public Refusals {};

TEST_P(Lock, HeldBySomebodyElse) {
  const std::string path = "/tmp/sidetrack-test-lock-" + std::to_string(getpid());
  const FileDescriptor held(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  ASSERT_EQ(flock(held.get(), LOCK_EX), 0);
  EXPECT_THAT(refused(5, apply({"-b", "80", "--wait", "50ms"}), {"XTABLES_LOCKFILE=" + path}),
              AllOf(HasSubstr(path), AnyOf(HasSubstr("process " + std::to_string(getpid())),  // in the sandbox
                                           HasSubstr("(pid " + std::to_string(getpid()) + ")"))));
  ASSERT_EQ(flock(held.get(), LOCK_UN), 0);
  EXPECT_EQ(ns.program(apply({"-b", "80", "--wait", "50ms"}), {}, {"XTABLES_LOCKFILE=" + path}).exit_code, 0);
  std::remove(path.c_str());
}

// Each new attempt takes the lock anew, while there are no tables yet: all of them together wait so long.
TEST_P(Lock, IsWaitedForOnce) {
  const std::string path = "/tmp/sidetrack-test-lock-" + std::to_string(getpid());
  const FileDescriptor held(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  ASSERT_EQ(flock(held.get(), LOCK_EX), 0);
  const auto start = std::chrono::steady_clock::now();
  const Output output = ns.program(apply({"-b", "80", "--wait", "2s"}), {}, {"XTABLES_LOCKFILE=" + path});
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(output.exit_code, 5);
  EXPECT_THAT(output.err, HasSubstr("after 2.0 s"));
  EXPECT_GE(took, std::chrono::seconds(2));
  EXPECT_LT(took, std::chrono::seconds(10));
  std::remove(path.c_str());
}

// From the node, the node's lock is irrelevant: the namespace itself is locked.
TEST_P(Lock, OfAnotherNamespaceIsTheNamespaceItself) {
  const std::string path = "/tmp/sidetrack-test-node-lock-" + std::to_string(getpid());
  const FileDescriptor node(open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  ASSERT_EQ(flock(node.get(), LOCK_EX), 0);
  const std::string target = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(ns.fd());
  std::vector<std::string> words = apply({"-b", "80", "--wait", "50ms", "--netns", target});
  const Namespace elsewhere;
  EXPECT_EQ(elsewhere.program(words, {}, {"XTABLES_LOCKFILE=" + path}).exit_code, 0);

  ASSERT_EQ(flock(ns.fd(), LOCK_EX), 0);
  words.emplace_back("--drop-invalid");
  EXPECT_EQ(elsewhere.program(words, {}, {"XTABLES_LOCKFILE=" + path}).exit_code, 5);
  std::remove(path.c_str());
}

INSTANTIATE_TEST_SUITE_P(, Lock, ::testing::Values("iptables-legacy"),
                         [](const auto&) { return std::string("iptables_legacy"); });

}  // namespace
}  // namespace sidetrack::netns
