// SPDX-License-Identifier: GPL-2.0-or-later
// Absent, unreadable and empty are three different things. And: for which reasons the next backend is tried.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/kernel_test.h"
#include "support/listing.h"
#include "support/network.h"
#include "support/traffic.h"
#include "support/words.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
const Words capture_options{"--ip-families", "ipv4,ipv6", "-i", "*", "-b", "*"};

Words sidetrack(const char* command) {
  Words words{program_under_test(), command};
  return std::string_view(command) == "clean" || std::string_view(command) == "show" ? words : words + capture_options;
}

constexpr const char* commands[] = {"apply", "verify", "diff", "clean", "show", "explain"};

Words words_of(const char* command) {
  return std::string_view(command) == "explain" ? Words{program_under_test(), "explain", "out", "tcp", "10.0.0.1:80"}
                                                : sidetrack(command);
}

const Words without_net_raw{"setpriv", "--bounding-set", "-all,+net_admin"};
const Words no_capabilities{"setpriv", "--bounding-set", "-all"};
const Words without_proc{"unshare", "--mount", "sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"", "sh"};

class Unreadable : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) ip(ns, "link set lo up\n");
  }

  // Nothing is changed, and no message says that there is nothing.
  void expect_refused(const Words& with, const char* missing) const {
    const std::string before = listing(ns);
    for (const char* command : commands) {
      const Output output = ns.program(with + words_of(command));
      EXPECT_EQ(output.exit_code, 4) << command << "\n" << output.out << output.err;
      EXPECT_THAT(output.err, AllOf(HasSubstr(missing), Not(HasSubstr("nothing")))) << command;
      EXPECT_EQ(output.out, "") << command;
      EXPECT_EQ(listing(ns), before) << command;
    }
  }

  Namespace ns;
};

TEST_F(Unreadable, LegacyRulesWithoutNetRaw) {
  ns.must(sidetrack("apply") + Words{"--backend", "iptables-legacy"});
  expect_refused(without_net_raw, "CAP_NET_RAW");
  // Named or not: a second set beside them is not what was requested.
  const Output output = ns.program(without_net_raw + sidetrack("apply") + Words{"--backend", "nftables"});
  EXPECT_EQ(output.exit_code, 4) << output.err;
}

TEST_F(Unreadable, RulesWithoutNetAdmin) {
  for (const char* backend : backends) {
    ns.must(sidetrack("apply") + Words{"--backend", backend});
    expect_refused(no_capabilities, "CAP_NET_ADMIN");
  }
}

TEST_F(Unreadable, NothingWithoutNetAdminIsNotKnownToBeNothing) { expect_refused(no_capabilities, "CAP_NET_ADMIN"); }

TEST_F(Unreadable, LegacyRulesWithoutProc) {
  ns.must(sidetrack("apply") + Words{"--backend", "iptables-legacy"});
  expect_refused(without_proc, "/proc");
  // No backend is what apply would take: it would refuse.
  const Output doctor = ns.program(without_proc + Words{program_under_test(), "doctor", "--json"});
  EXPECT_THAT(doctor.out, AllOf(HasSubstr("\"automatic\": null"), HasSubstr("\"usable\": true"))) << doctor.err;
}

TEST_F(Unreadable, TablesThatCannotBeOursDoNotMatter) {
  ns.must({"iptables-legacy", "-t", "filter", "-A", "OUTPUT", "-p", "udp", "-j", "ACCEPT"});
  const Output applied = ns.program(without_net_raw + sidetrack("apply") + Words{"--backend", "nftables"});
  EXPECT_EQ(applied.exit_code, 0) << applied.err;
  const Output cleaned = ns.program(without_net_raw + sidetrack("clean"));
  EXPECT_EQ(cleaned.exit_code, 0) << cleaned.err;
  EXPECT_THAT(cleaned.err, HasSubstr("removed all rules"));
}

TEST_F(Unreadable, NoLegacyTableIsNothing) {
  const Output applied = ns.program(without_net_raw + sidetrack("apply"));
  EXPECT_EQ(applied.exit_code, 0) << applied.err;
  EXPECT_EQ(ns.program(without_net_raw + sidetrack("verify")).exit_code, 0);
  EXPECT_THAT(ns.program(without_net_raw + sidetrack("clean")).err, HasSubstr("removed all rules"));
  EXPECT_THAT(ns.program(without_net_raw + sidetrack("clean")).err, HasSubstr("nothing to remove"));
}

// ---- Falling back.

class FallingBack : public Unreadable {
 protected:
  // `setup` is a shell script that runs the program as "$@".
  [[nodiscard]] Output with(const std::string& setup, const Words& more = {}) const {
    return ns.program(Words{"sh", "-c", setup, "sh"} + sidetrack("apply") + more);
  }
  void expect_nftables(const std::string& setup, const char* reason) const {
    const Output output = with(setup);
    EXPECT_EQ(output.exit_code, 0) << output.err;
    EXPECT_THAT(output.err, AllOf(HasSubstr(reason), HasSubstr("not used: iptables-nft: "),
                                  HasSubstr("through nftables"), Not(HasSubstr("CAP_NET_ADMIN"))));
    EXPECT_EQ(ns.program(sidetrack("verify")).exit_code, 0);
    // The one that is named cannot, and says the same.
    const Output named = with(setup, {"--backend", "iptables-nft"});
    EXPECT_EQ(named.exit_code, 1) << named.err;
    EXPECT_THAT(named.err, AllOf(HasSubstr(reason), Not(HasSubstr("CAP_NET_ADMIN"))));
  }
};

TEST_F(FallingBack, AChainAtAnotherPriority) {
  expect_nftables(
      "nft 'add table ip nat; add chain ip nat OUTPUT { type nat hook output priority 50; }' && exec \"$@\"",
      "OUTPUT of the table ip nat has a different hook");
}

TEST_F(FallingBack, AChainWithoutAHook) {
  expect_nftables("nft 'add table ip nat; add chain ip nat OUTPUT' && exec \"$@\"",
                  "OUTPUT of the table ip nat has no hook");
}

TEST_F(FallingBack, ADormantTable) {
  expect_nftables("nft 'add table ip nat { flags dormant; }' && exec \"$@\"", "the table ip nat is dormant");
}

TEST_F(FallingBack, ATableThatAnotherProcessOwns) {
  expect_nftables(
      "d=$(mktemp -d) && mkfifo $d/in && { nft -i <$d/in >/dev/null & } && exec 3>$d/in && rm -r $d &&"
      "echo 'add table ip nat { flags owner; }' >&3 && until nft list tables | grep -q 'ip nat'; do :; done;"
      "\"$@\"; code=$?; exec 3>&-; wait; exit $code",
      "another process owns the table");
}

TEST_F(FallingBack, AnIdThatIsNotMapped) {
  const Words inside{"unshare", "--user", "--net", "--map-root-user"};
  const Output output =
      ns.program(inside + Words{"sh", "-c", "ip link set lo up && exec \"$@\"", "sh"} + sidetrack("apply"));
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.err, AllOf(HasSubstr("not used: iptables-nft: "), HasSubstr("--uid-owner 1337"),
                                HasSubstr("through nftables")));
}

TEST_F(FallingBack, NotBecauseOfRoutes) {
  const Output output = with("sysctl -q -w net.ipv6.conf.lo.disable_ipv6=1 && exec \"$@\"", {"-m", "TPROXY"});
  EXPECT_EQ(output.exit_code, 3) << output.err;
  const std::size_t first = output.err.find("IPv6 is switched off on lo");
  ASSERT_NE(first, std::string::npos) << output.err;
  EXPECT_EQ(output.err.find("IPv6 is switched off on lo", first + 1), std::string::npos) << output.err;
  EXPECT_THAT(output.err, Not(HasSubstr("no backend can")));
}

// ---- The lock of the namespace.

TEST_F(Unreadable, TheLockOfTheNamespaceNamesItsHolder) {
  for (const char* backend : backends) {
    const Output output = ns.program(Words{"flock", "/proc/self/ns/net"} + sidetrack("apply") +
                                     Words{"--backend", backend, "--wait", "50ms"});
    EXPECT_EQ(output.exit_code, 5) << output.err;
    EXPECT_THAT(output.err, AllOf(HasSubstr("network namespace"), HasSubstr("flock (pid ")));
    // Who only reads does not wait.
    EXPECT_EQ(ns.program(Words{"flock", "/proc/self/ns/net"} + sidetrack("diff")).exit_code, 6);
  }
}

}  // namespace
}  // namespace sidetrack::netns
