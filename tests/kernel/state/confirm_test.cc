// SPDX-License-Identifier: GPL-2.0-or-later
// apply --confirm: all is as it was, unless somebody confirms.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <optional>
#include <sstream>

#include "support/amount.h"
#include "support/background.h"
#include "support/kernel_test.h"
#include "support/listing.h"
#include "support/network.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Confirm : public KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    pod_.emplace();
    trust_addresses(*pod_);
    ip(*pod_, "link set lo up\n");
  }

  [[nodiscard]] static Words sidetrack(const char* command, const Words& more = {}) {
    return Words{program_under_test(), command,    "--backend", GetParam(), "-i", "*", "-b", "*",
                 "--ip-families",      "ipv4,ipv6"} +
           more;
  }
  [[nodiscard]] int verify(const Words& more = {}) const { return pod_->program(sidetrack("verify", more)).exit_code; }

  std::optional<Namespace> pod_;
};

constexpr const char* asked = "waiting for the confirmation";

TEST_P(Confirm, WhatNobodyConfirmsIsRolledBack) {
  const Words before_all[] = {
      {},
      {"-m", "TPROXY", "-d", "8080"},
      {"--backend", "nftables", "-o", "22", "--redirect-dns", "--dns-server", "10.0.0.10"},
      {"-d", "22,9000-9100", "-x", "10.9.0.0/16", "-o", "25", "--exclude-uids", "7,9-11", "-k", "eth1"},
      {"--backend", "iptables-legacy", "-k", "eth0", "-x", "10.0.0.0/8"},
  };
  for (const Words& before : before_all) {
    if (!before.empty()) pod_->must(sidetrack("apply", before));
    const auto was = state(*pod_);
    const Output output = pod_->program(sidetrack("apply", {"--confirm", "200ms", "-m", "TPROXY"}));
    EXPECT_EQ(output.exit_code, 1);
    EXPECT_THAT(output.err, AllOf(HasSubstr(asked), HasSubstr("not confirmed within 0.2 s: rolled back")));
    EXPECT_EQ(state(*pod_), was) << ::testing::PrintToString(before);
    if (!before.empty()) {
      EXPECT_EQ(verify(before), 0);
    }
    pod_->must({program_under_test(), "clean"});
  }
}

// Ours stand among rules of others where they stood, also in chains that had none of ours meanwhile.
TEST_P(Confirm, AmongOthersTheyComeBackWhereTheyStood) {
  const std::string iptables = std::string_view(GetParam()) == "iptables-nft" ? "iptables" : "iptables-legacy";
  pod_->must(sidetrack("apply", {"-m", "TPROXY", "-k", "eth1"}));
  const Words accept{"-p", "tcp", "--dport", "2222", "-j", "ACCEPT"};
  for (const Words& place :
       {Words{"nat", "-A", "OUTPUT"}, Words{"mangle", "-I", "PREROUTING"}, Words{"mangle", "-A", "PREROUTING"}})
    pod_->must(Words{iptables, "-t"} + place + accept);
  if (std::string_view(GetParam()) != "nftables") {  // which has a table of its own
    for (const Words& place : {Words{"nat", "-I", "ISTIO_OUTPUT"}, Words{"nat", "-I", "PREROUTING", "2"}})
      pod_->must(Words{iptables, "-t"} + place + accept);
  }
  const auto was = state(*pod_);
  for (const Words& newer : {Words{"--backend", "nftables"}, Words{"-m", "REDIRECT"},
                             Words{"--backend", "iptables-nft"}, Words{"--backend", "iptables-legacy"}}) {
    const Output output = pod_->program(sidetrack("apply", Words{"--confirm", "1ms"} + newer));
    EXPECT_EQ(output.exit_code, 1);
    EXPECT_EQ(state(*pod_), was) << ::testing::PrintToString(newer);
  }
}

// What one found there that is not confirmed itself is nothing to go back to.
TEST_P(Confirm, OneAtATimeWaits) {
  pod_->must(sidetrack("apply", {"-o", "1"}));
  const auto was = state(*pod_);
  Background first(*pod_, sidetrack("apply", {"-o", "2", "--confirm", "10m"}));
  first.wait_for(asked);
  const auto unconfirmed = state(*pod_);
  for (const char* ports : {"2", "3"}) {
    const Output second = pod_->program(sidetrack("apply", {"-o", ports, "--confirm", "10m"}));
    EXPECT_EQ(second.exit_code, 5);
    EXPECT_THAT(second.err,
                HasSubstr("another 'apply --confirm' is waiting for confirmation here; nothing was changed"));
    EXPECT_EQ(state(*pod_), unconfirmed);
  }
  // Others are told, whether they change something or not.
  for (const Words& command : {sidetrack("apply", {"-o", "2"}), sidetrack("apply", {"-o", "3"}),
                               Words{program_under_test(), "clean", "--backend", GetParam()}}) {
    const Output other = pod_->program(command);
    EXPECT_EQ(other.exit_code, 0);
    EXPECT_THAT(other.err, HasSubstr("unless it is confirmed, it restores what was there before"));
  }
  first.signal(SIGTERM);
  const Output rolled_back = first.end();
  EXPECT_EQ(rolled_back.exit_code, 1);
  EXPECT_THAT(rolled_back.err, Not(HasSubstr("another 'apply --confirm'")));
  EXPECT_EQ(state(*pod_), was);
  EXPECT_THAT(pod_->program(sidetrack("apply", {"-o", "1"})).err, Not(HasSubstr("--confirm"))) << "it has ended";
  EXPECT_EQ(verify({"-o", "1"}), 0);
}

TEST_P(Confirm, WhatWasChangedMeanwhileIsNotConfirmed) {
  Background first(*pod_, sidetrack("apply", {"-o", "1", "--confirm", "10m"}));
  first.wait_for(asked);
  pod_->must(sidetrack("apply", {"-o", "2"}));
  first.signal(SIGUSR1);
  const Output output = first.end();
  EXPECT_EQ(output.exit_code, 6);
  EXPECT_THAT(output.err, AllOf(HasSubstr("no longer as requested"), Not(HasSubstr("sidetrack: confirmed\n"))));
}

TEST_P(Confirm, WhatIsConfirmedStays) {
  for (const char* line : {"\n", "y\n", "yes\n", "Y\n", "Yes\n", "USR1"}) {
    Background running(*pod_, sidetrack("apply", {"--confirm", "10m"}));
    running.wait_for(asked);
    EXPECT_EQ(verify(), 0);
    EXPECT_EQ(pod_->program(sidetrack("apply", {"--wait", "20s"})).exit_code, 0);  // no lock is held
    if (std::string_view(line) == "USR1") {
      running.close_input();
      running.signal(SIGUSR1);
    } else {
      running.type(line);
    }
    const Output output = running.end();
    EXPECT_EQ(output.exit_code, 0) << output.err;
    EXPECT_THAT(output.err, HasSubstr("confirmed"));
    EXPECT_EQ(verify(), 0);
    pod_->must({program_under_test(), "clean"});
  }
  // Nothing to be confirmed.
  pod_->must(sidetrack("apply"));
  const Output again = pod_->program(sidetrack("apply", {"--confirm", "10m"}));
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.err, AllOf(HasSubstr("nothing to change"), Not(HasSubstr(asked)), Not(HasSubstr("kill -USR1"))));
}

TEST_P(Confirm, SignalsAndOtherAnswersRollBack) {
  const auto was = state(*pod_);
  for (const int number :
       {0,      SIGTERM, SIGINT,  SIGHUP,  SIGQUIT, SIGUSR2, SIGALRM,   SIGVTALRM, SIGPROF,  SIGIO,
        SIGPWR, SIGPIPE, SIGXCPU, SIGXFSZ, SIGABRT, SIGSEGV, SIGSTKFLT, SIGTRAP,   SIGRTMIN, SIGRTMAX}) {
    Background running(*pod_, sidetrack("apply", {"--confirm", "10m"}));
    running.wait_for(asked);
    number == 0 ? running.type("no\n") : running.signal(number);
    const Output output = running.end();
    EXPECT_EQ(output.exit_code, 1) << number;
    EXPECT_THAT(output.err, HasSubstr("rolled back; rules"));
    EXPECT_EQ(state(*pod_), was) << number;
  }
}

TEST_P(Confirm, InputWithoutAnEndRollsBack) {
  const auto was = state(*pod_);
  Words words = sidetrack("apply", {"--confirm", "10m"});
  words.insert(words.begin(), {"sh", "-c", "exec \"$@\" </dev/zero", "sh"});
  const Output output = pod_->program(words);
  EXPECT_EQ(output.exit_code, 1);
  EXPECT_THAT(output.err, HasSubstr("not confirmed: rolled back"));
  EXPECT_EQ(state(*pod_), was);
}

TEST_P(Confirm, SignalsThatEndNoProgramDoNotRollBack) {
  Background running(*pod_, sidetrack("apply", {"--confirm", "10m"}));
  running.wait_for(asked);
  for (const int number : {SIGCHLD, SIGWINCH, SIGURG, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU}) running.signal(number);
  running.type("\n");
  EXPECT_EQ(running.end().exit_code, 0);
  EXPECT_EQ(verify(), 0);
}

TEST_P(Confirm, ATerminalThatIsGoneRollsBackAndNoKeyStopsIt) {
  const auto was = state(*pod_);
  {
    Background running(*pod_, sidetrack("apply", {"--confirm", "10m"}), {}, true);
    running.wait_for(asked);
    running.hang_up();
    EXPECT_EQ(running.end().exit_code, 1);
    EXPECT_EQ(state(*pod_), was);
  }
  Background running(*pod_, sidetrack("apply", {"--confirm", "10m"}), {}, true);
  running.wait_for(asked);
  running.type("\x1a\n");  // Ctrl-Z
  EXPECT_EQ(running.end().exit_code, 0);
  EXPECT_EQ(verify(), 0);
}

TEST_P(Confirm, KilledWhileItWaitsTheNewRulesStand) {
  Background running(*pod_, sidetrack("apply", {"--confirm", "10m"}));
  running.wait_for(asked);
  running.signal(SIGKILL);
  EXPECT_EQ(running.end().exit_code, 128 + SIGKILL);
  EXPECT_EQ(verify(), 0);
}

TEST_P(Confirm, AnotherWritersLockIsWaitedForToRollBack) {
  const auto was = state(*pod_);
  Background running(*pod_, sidetrack("apply", {"--confirm", "10m", "--wait", "1s"}));
  running.wait_for(asked);
  {
    const FileDescriptor lock(
        pod_->run([] { return check(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), "open the namespace"); }));
    check(flock(lock.get(), LOCK_EX), "lock the namespace");
    running.type("no\n");
    running.wait_for("cannot roll back yet");
  }
  EXPECT_EQ(running.end().exit_code, 1);
  EXPECT_EQ(state(*pod_), was);
}

// A chain cannot go while another program's rule leads there. nftables' are in a table of their own.
TEST_P(Confirm, ARollbackThatIsRefusedSaysWhatStands) {
  if (std::string_view(GetParam()) == "nftables") return;
  const Words lead{GetParam(), "-t", "nat", "-A", "OUTPUT", "-j", "ISTIO_REDIRECT"};
  const auto was = state(*pod_);
  Background running(*pod_, sidetrack("apply", {"--confirm", "10m"}));
  running.wait_for(asked);
  pod_->must(lead);
  running.type("no\n");
  const Output output = running.end();
  EXPECT_EQ(output.exit_code, 1);
  EXPECT_THAT(output.err,
              AllOf(HasSubstr("error: not confirmed; cannot roll back: "), HasSubstr("chain ISTIO_REDIRECT"),
                    HasSubstr("; what was not confirmed is still there: " + std::string(GetParam()) + ": "),
                    HasSubstr("; 'sidetrack clean' removes all rules and routes of the mesh")));
  pod_->must({GetParam(), "-t", "nat", "-D", "OUTPUT", "-j", "ISTIO_REDIRECT"});
  EXPECT_EQ(verify(), 0);
  pod_->must({program_under_test(), "clean"});
  EXPECT_EQ(state(*pod_), was);
}

TEST_P(Confirm, WhatIsRefusedIsNotToBeConfirmed) {
  if (std::string_view(GetParam()) == "nftables") return;
  pod_->must(sidetrack("apply"));
  pod_->must({GetParam(), "-t", "nat", "-A", "OUTPUT", "-j", "ISTIO_REDIRECT"});
  const auto was = state(*pod_);
  const Output output = pod_->program({program_under_test(), "apply", "-m", "NONE", "--confirm", "1ms"});
  EXPECT_EQ(output.exit_code, 1);
  EXPECT_THAT(output.err, AllOf(HasSubstr("another program's rule leads to it"), Not(HasSubstr("kill -USR1"))));
  EXPECT_EQ(state(*pod_), was);
}

// ---- At every moment

// The calls by which it changes something, or waits, with how often each is made.
std::map<std::string, int> calls_of(const Namespace& where, const Words& words) {
  std::istringstream lines(
      where
          .program(Words{"strace", "-qq", "-o", "/dev/fd/1", "-e",
                         "trace=sendto,sendmsg,setsockopt,getsockopt,flock,rt_sigprocmask,ppoll,read"} +
                   words)
          .out);
  std::map<std::string, int> counts;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end = line.find('(');
    if (end != std::string::npos) ++counts[line.substr(0, end)];
  }
  return counts;
}

Words with_fate(const std::string& call, int nth, const std::string& fate, const Words& words) {
  count_fault();
  return Words{"strace",    "-qq", "-o",
               "/dev/null", "-e",  "inject=" + call + ":signal=" + fate + ":when=" + std::to_string(nth)} +
         words;
}

const Words older{"-m", "TPROXY", "-o", "22"};

TEST_P(Confirm, AskedToEndAtAnyMomentNothingOfItStands) {
  pod_->must(sidetrack("apply", older));
  const auto was = state(*pod_);
  const Words words = sidetrack("apply", {"--confirm", "1ms"});
  int moments = 0;
  for (const auto& [call, count] : calls_of(*pod_, words)) {
    for (int nth = 1; nth <= count; nth += fault_stride(), ++moments) {
      const Output output = pod_->program(with_fate(call, nth, "SIGHUP", words));
      EXPECT_TRUE(output.exit_code == 1 || output.exit_code == 128 + SIGHUP) << output.exit_code << output.err;
      ASSERT_EQ(state(*pod_), was) << call << " " << nth << "\n" << output.err;
    }
  }
  EXPECT_GT(moments, 20 / fault_stride());
}

TEST_P(Confirm, KilledAtAnyMomentEachTableIsOldOrNew) {
  const auto tables = [&] {
    auto now = state(*pod_);
    now.erase("routing");  // a rule or a route at a time
    return now;
  };
  pod_->must(sidetrack("apply"));
  const auto newer = tables();
  pod_->must(sidetrack("apply", older));
  const auto was = tables();
  const Words words = sidetrack("apply", {"--confirm", "1ms"});
  int kills = 0;
  for (const auto& [call, count] : calls_of(*pod_, words)) {
    for (int nth = 1; nth <= count; nth += fault_stride()) {
      if (pod_->program(with_fate(call, nth, "SIGKILL", words)).exit_code == 128 + SIGKILL) ++kills;
      for (const auto& [name, text] : tables()) {
        const auto before = was.find(name);
        const auto after = newer.find(name);
        EXPECT_TRUE((before != was.end() && text == before->second) || (after != newer.end() && text == after->second))
            << "killed at " << call << " " << nth << ": " << name << "\n"
            << text;
      }
      pod_->must(sidetrack("apply", older));
      ASSERT_EQ(tables(), was) << call << " " << nth;
    }
  }
  EXPECT_GT(kills, 20 / fault_stride());
}

// Over a connection that the rules cut nothing is read any more.
TEST_P(Confirm, HowToConfirmIsSaidBeforeTheChange) {
  const auto was = state(*pod_);
  const Words words = sidetrack("apply", {"--confirm", "100h"});
  EXPECT_EQ(pod_->program(with_fate("write", 1, "SIGKILL", words)).exit_code, 128 + SIGKILL);
  EXPECT_EQ(state(*pod_), was);
  const Output output = pod_->program(with_fate("write", 2, "SIGKILL", words));
  EXPECT_THAT(output.err, AllOf(HasSubstr("press Enter within 100h, or 'kill -USR1 "), Not(HasSubstr(asked))));
  EXPECT_EQ(verify(), 0);
}

INSTANTIATE_TEST_SUITE_P(, Confirm, ::testing::ValuesIn(backends), backend_name);

}  // namespace
}  // namespace sidetrack::netns
