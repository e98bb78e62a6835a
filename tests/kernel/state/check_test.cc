// SPDX-License-Identifier: GPL-2.0-or-later
// `apply --check`: what the kernel would say, and nothing else.
#include <gmock/gmock.h>
#include <unistd.h>

#include "support/kernel_test.h"
#include "support/namespace.h"
#include "support/network.h"
#include "support/trace.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

std::string without(const char* names) { return std::string("WITHOUT=") + names; }
const std::string preload = "LD_PRELOAD=" SIDETRACK_WITHOUT;

class Check : public KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) ip(ns, "link set lo up\n");
  }

  [[nodiscard]] std::vector<std::string> apply(std::vector<std::string> more) const {
    std::vector<std::string> words{program_under_test(), "apply",     "--backend", GetParam(),
                                   "--ip-families",      "ipv4,ipv6", "-i",        "*"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  [[nodiscard]] Output run(const std::vector<std::string>& words, std::vector<std::string> environment = {}) const {
    environment.push_back("XTABLES_LOCKFILE=" + absent_lock_file());
    return ns.program(words, {}, environment);
  }

  // Runs `apply --check` with these options and expects that nothing changed.
  [[nodiscard]] Output check(std::vector<std::string> more, const std::vector<std::string>& environment = {}) const {
    more.emplace_back("--check");
    const std::string before = trace(ns);
    Output output = run(apply(std::move(more)), environment);
    EXPECT_EQ(trace(ns), before);
    EXPECT_NE(access(absent_lock_file().c_str(), F_OK), 0) << "a lock file was made";
    EXPECT_EQ(output.out, "");
    return output;
  }

  void program(std::vector<std::string> more) const {
    const Output output = run(apply(std::move(more)));
    ASSERT_EQ(output.exit_code, 0) << output.err;
    unlink(absent_lock_file().c_str());
    // Counters that would be missed.
    ns.must({"bash", "-c", "echo word > /dev/udp/127.0.0.1/9"});
  }

  Namespace ns;
};

TEST_P(Check, SaysThatTheKernelWouldAcceptAndChangesNothing) {
  for (const char* mode : {"REDIRECT", "TPROXY"}) {
    const Output fresh = check({"-b", "*", "-m", mode, "--redirect-dns", "--capture-all-dns"});
    EXPECT_EQ(fresh.exit_code, 0);
    EXPECT_THAT(fresh.err,
                AllOf(HasSubstr("sidetrack: the kernel would accept "),
                      HasSubstr(std::string(" through ") + GetParam()), EndsWith("; nothing was changed\n")));
  }
  program({"-b", "80"});
  const Output other = check({"-b", "*"});
  EXPECT_EQ(other.exit_code, 0);
  EXPECT_THAT(other.err, EndsWith("; nothing was changed\n"));
  const Output same = check({"-b", "80"});
  EXPECT_EQ(same.exit_code, 0);
  EXPECT_THAT(same.err, AllOf(HasSubstr("sidetrack: nothing to change: "), Not(HasSubstr("not checked"))));
}

TEST_P(Check, SaysWhatItCouldNotAsk) {
  const std::string said = check({"-b", "*"}).err;
  EXPECT_THAT(said,
              HasSubstr("warning: not checked: routing: whether the kernel accepts 'ip -6 addr add ::6/128 dev lo'"));
  const bool legacy = std::string_view(GetParam()) == "iptables-legacy";
  EXPECT_EQ(said.find("not checked: iptables-legacy: whether the kernel has nat (ipv4)") != std::string::npos, legacy);
  EXPECT_EQ(said.find("only a commit shows that") != std::string::npos, legacy);
}

TEST_P(Check, SaysWhichBackendsWouldLoseTheirRules) {
  program({"-b", "80"});
  const char* other = std::string_view(GetParam()) == "nftables" ? "iptables-nft" : "nftables";
  const Output output = check({"-b", "80", "--backend", other});
  EXPECT_EQ(output.exit_code, 0);
  EXPECT_THAT(output.err,
              EndsWith(std::string("; apply would remove those in ") + GetParam() + "; nothing was changed\n"));
}

// An extension that the kernel lacks, and in iptables an id that does not exist: the words of apply.
TEST_P(Check, IsRefusedAsApplyIs) {
  for (const bool programmed : {false, true}) {
    if (programmed) program({"-b", "80"});
    const std::vector<std::string> environment{preload, without("REDIRECT,redir")};
    const std::vector<std::string> options{"-b", "*", "-p", "15003"};  // rules that stand already are not sent again
    const Output checked = check(options, environment);
    const Output applied = run(apply(options), environment);
    EXPECT_EQ(checked.exit_code, 3) << checked.err;
    EXPECT_EQ(applied.exit_code, 3);
    EXPECT_THAT(checked.err, AllOf(HasSubstr("REDIRECT"), HasSubstr("modprobe")));
    EXPECT_EQ(checked.err, applied.err);
    unlink(absent_lock_file().c_str());
  }
  if (std::string_view(GetParam()) == "nftables") return;
  std::vector<std::string> outer{"unshare", "--user", "--net", "--map-root-user"};
  std::vector<std::string> words = apply({"-b", "*", "--ip-families", "ipv4"});
  words.insert(words.begin(), outer.begin(), outer.end());
  const Output applied = run(words);
  words.emplace_back("--check");
  const Output checked = run(words);
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_THAT(checked.err, HasSubstr("-m owner --uid-owner 1337"));
  EXPECT_EQ(checked.err, applied.err);
  unlink(absent_lock_file().c_str());
}

TEST_P(Check, WithNetAdminAlone) {
  std::vector<std::string> words{"setpriv", "--bounding-set", "-all,+net_admin"};
  const std::vector<std::string> program = apply({"-b", "*", "--check"});
  words.insert(words.end(), program.begin(), program.end());
  EXPECT_EQ(run(words).exit_code, std::string_view(GetParam()) == "iptables-legacy" ? 4 : 0);
}

class WithoutNat : public Check {};

// A table is created when it is opened, and stays, even if the next one is missing.
TEST_P(WithoutNat, NoOtherTableIsCreated) {
  for (const std::vector<std::string>& options : {std::vector<std::string>{"-m", "TPROXY"}, {"--redirect-dns"}}) {
    const std::string before = trace(ns);
    const Output output = run(apply(options), {preload, without("nat")});
    EXPECT_EQ(output.exit_code, 3) << output.err;
    EXPECT_THAT(output.err, HasSubstr("table nat"));
    EXPECT_EQ(trace(ns), before);
    unlink(absent_lock_file().c_str());
  }
}

INSTANTIATE_TEST_SUITE_P(, WithoutNat, ::testing::Values("iptables-legacy"), backend_name);
INSTANTIATE_TEST_SUITE_P(, Check, ::testing::ValuesIn(backends), backend_name);

}  // namespace
}  // namespace sidetrack::netns
