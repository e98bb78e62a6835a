// SPDX-License-Identifier: GPL-2.0-or-later
// What the kernel says, disturbed at every place in turn: receives that fail, datagrams that are lost or cut off, dumps
// that are interrupted or end with an error. A command that writes ends as told; one that reads says all of what it
// says without the fault, or an error.
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "support/amount.h"
#include "support/network.h"
#include "support/step.h"
#include "support/traffic.h"
#include "support/words.h"

namespace sidetrack::netns {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

struct Fault {
  const char* kind;
  int error = 0;
  bool lasting = false;  // not once, but from there on
};

// By what they are faults of (preload/disturb.cc): a receive, a datagram, one of a dump, and the two questions of
// legacy iptables for a table. `some` meet with each of the program's answers to a fault: to start over, to fail, to do
// without.
struct Faults {
  std::vector<Fault> receive;
  std::vector<Fault> datagram;
  std::vector<Fault> dump;
  std::vector<Fault> info;
  std::vector<Fault> entries;
};
const Faults all_faults{
    {{"fails", EINTR}, {"fails", ENOBUFS}},
    {{"lost", ENOBUFS}, {"truncated"}, {"cut"}, {"foreign"}},
    {{"interrupted"},
     {"interrupted", 0, true},
     {"overrun"},
     {"done", EPERM},
     {"done", ENOMEM},
     {"done", EINTR},
     {"done", EOPNOTSUPP},
     {"error", ENOMEM}},
    {{"fails", EAGAIN}, {"fails", ENOMEM}, {"stale"}},
    {{"fails", EAGAIN}, {"fails", ENOMEM}},
};
const Faults some_faults{
    {{"fails", ENOBUFS}},           {{"lost", ENOBUFS}}, {{"interrupted", 0, true}, {"done", EPERM}, {"done", ENOMEM}},
    {{"fails", ENOMEM}, {"stale"}}, {{"fails", ENOMEM}},
};
const Faults few_faults{{{"fails", ENOBUFS}}, {{"lost", ENOBUFS}}, {{"done", ENOMEM}}, {{"stale"}}, {}};

// Those that can happen to a call.
std::vector<Fault> of(const Faults& faults, const std::string& call) {
  if (call == "info") return faults.info;
  if (call == "entries") return faults.entries;
  std::vector<Fault> all = faults.receive;
  if (call != "empty") all.insert(all.end(), faults.datagram.begin(), faults.datagram.end());
  if (call == "dump") all.insert(all.end(), faults.dump.begin(), faults.dump.end());
  return all;
}

struct Undisturbed {
  Output output;
  Words calls;  // what the program reads, call by call
};

// Programs whose reading is disturbed.
class Disturbance {
 public:
  Disturbance() : log_(check(memfd_create("log", MFD_CLOEXEC), "memfd_create")) {}

  // Without a fault; the program must succeed, or find a difference.
  [[nodiscard]] Undisturbed run(const Namespace& where, const Words& program) const {
    Output output = run(where, program, {});
    EXPECT_THAT(output.exit_code, AnyOf(0, 6)) << output.err;
    Words calls = log();
    EXPECT_GT(calls.size(), 10U);
    return {std::move(output), std::move(calls)};
  }

  // With the fault at the nth call.
  [[nodiscard]] Output run(const Namespace& where, const Words& program, const Fault& fault, std::size_t nth) const {
    count_fault();
    Output output = run(where, program,
                        {"DISTURB=" + std::string(fault.kind) + " " + std::to_string(fault.error) + " " +
                         std::to_string(nth) + (fault.lasting ? " 1" : " 0")});
    const Words calls = log();
    EXPECT_GE(calls.size(), nth);
    EXPECT_NE(std::ranges::find(calls, "disturbed"), calls.end());
    return output;
  }

 private:
  [[nodiscard]] Output run(const Namespace& where, const Words& program, Words environment) const {
    check(ftruncate(log_.get(), 0), "ftruncate");
    environment.emplace_back("LD_PRELOAD=" SIDETRACK_DISTURB);
    environment.push_back("DISTURB_LOG=/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(log_.get()));
    try {
      return where.program(program, {}, environment);
    } catch (const std::exception& error) {
      throw std::runtime_error(environment.front() + ": " + error.what());
    }
  }

  [[nodiscard]] Words log() const {
    std::string text(1 << 16, '\0');
    text.resize(static_cast<std::size_t>(check(pread(log_.get(), text.data(), text.size(), 0), "read the log")));
    std::istringstream lines(text);
    Words found;
    for (std::string line; std::getline(lines, line);) found.push_back(line);
    return found;
  }

  FileDescriptor log_;
};

std::string name_of(const Fault& fault, const Words& calls, std::size_t nth) {
  return calls[nth - 1] + ", call " + std::to_string(nth) + " of " + std::to_string(calls.size()) + ": " + fault.kind +
         (fault.error != 0 ? std::string(" ") + strerrorname_np(fault.error) : "") +
         (fault.lasting ? ", from there on" : "");
}

// ---- commands that write

using DisturbedWriting = StepTest;

// "installed 56 rules through nftables in 5.8 ms": how long it took differs.
std::string without_duration(const std::string& text) {
  static const std::regex duration(" in [0-9.]+ ms");
  return std::regex_replace(text, duration, "");
}

TEST_P(DisturbedWriting, EndsAsAskedOrSaysWhatStands) {
  const auto stride = static_cast<std::size_t>(fault_stride());
  const Disturbance disturbance;
  const auto [whole, calls] = disturbance.run(ns, words());
  begin();
  int failures = 0;
  for (std::size_t nth = 1; nth <= calls.size(); nth += stride) {
    for (const Fault& fault : of(stays() ? all_faults : some_faults, calls[nth - 1])) {
      const std::string what = name_of(fault, calls, nth);
      const Output output = disturbance.run(ns, words(), fault, nth);
      if (output.exit_code == 0) {
        EXPECT_EQ(without_duration(output.err), without_duration(whole.err)) << what;
      } else {
        ++failures;
      }
      if (judge(output, what) != old_state || GetParam().from == nullptr) begin();
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(failures, 10 / fault_stride());
}

std::vector<Step> all_steps() {
  std::vector<Step> all = steps();
  for (const char* to : backends) all.push_back({nullptr, to});
  return all;
}

INSTANTIATE_TEST_SUITE_P(, DisturbedWriting, ::testing::ValuesIn(all_steps()), step_name);

// ---- commands that read

class DisturbedReading : public KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ip(ns, "link set lo up\n");
    trust_addresses(ns);
    ns.must(asked("apply"));
  }

  [[nodiscard]] static Words asked(const char* command, const Words& more = {}) {
    Words words{program_under_test(),
                command,
                "--backend",
                GetParam(),
                "--ip-families",
                "ipv4,ipv6",
                "-i",
                "*",
                "-b",
                "*",
                "-m",
                "TPROXY",
                "-d",
                "15021"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  // That the command says at every fault what it says without one, or an error and nothing else.
  void expect_all_or_error(const Words& program) const {
    const auto [whole, calls] = disturbance.run(ns, program);
    const auto stride = static_cast<std::size_t>(fault_stride());
    int failures = 0;
    for (std::size_t nth = 1; nth <= calls.size(); nth += stride) {
      for (const Fault& fault : of(all_faults, calls[nth - 1])) {
        const std::string what = program[1] + ": " + name_of(fault, calls, nth);
        const Output output = disturbance.run(ns, program, fault, nth);
        if (output.exit_code == whole.exit_code) {
          EXPECT_EQ(output.out, whole.out) << what;
        } else {
          ++failures;
          EXPECT_THAT(output.exit_code, AnyOf(1, 4, 5)) << what << output.err;
          EXPECT_EQ(output.out, "") << what;
          EXPECT_THAT(output.err, HasSubstr("error")) << what;
        }
        if (HasFailure()) return;
      }
    }
    EXPECT_GT(failures, 10 / fault_stride());
  }

  Namespace ns;
  Disturbance disturbance;
};

TEST_P(DisturbedReading, SaysAllOrAnError) {
  const auto before = state(ns);
  for (const Words& program :
       {asked("verify"), asked("apply", {"--check", "-p", "16001"}), asked("diff", {"-p", "16001"}),
        Words{program_under_test(), "show"}, Words{program_under_test(), "show", "--format", "json"},
        Words{program_under_test(), "explain", "out", "tcp", "10.96.0.10:443"}}) {
    expect_all_or_error(program);
    if (HasFailure()) return;
  }
  EXPECT_EQ(state(ns), before);
}

// One thing too many, each time another, which a listing that is not whole would not show.
TEST_P(DisturbedReading, VerifyNeverMissesADifference) {
  const bool legacy = std::string_view(GetParam()) == "iptables-legacy";
  const bool native = std::string_view(GetParam()) == "nftables";
  struct Extra {
    Words program;
    std::string input;
  };
  // Of a shape of Istio's: any other is another program's, and no difference.
  Words rule{"nft",  "add",   "rule", "inet",    "sidetrack", "nat-ISTIO_OUTPUT",
             "meta", "skuid", "4242", "counter", "return"};
  if (!native) {
    rule = {legacy ? "ip6tables-legacy" : "ip6tables-nft",
            "-t",
            "nat",
            "-A",
            "ISTIO_OUTPUT",
            "-m",
            "owner",
            "--uid-owner",
            "4242",
            "-j",
            "RETURN"};
  }
  const Extra elsewhere =
      native ? Extra{{"ip6tables-nft", "-t", "raw", "-N", "ISTIO_OUTPUT"}, ""}
             : Extra{{"nft", "-f", "-"}, ns.must({program_under_test(), "render", "--format", "nft", "-b", "80"})};
  const Extra in_legacy{{"iptables-legacy", "-t", "raw", "-N", "ISTIO_OUTPUT"}, ""};
  const Extra policy_rule{{"ip", "rule", "add", "fwmark", "1337", "lookup", "133", "protocol", "137"}, ""};
  const Extra route{{"ip", "route", "add", "local", "default", "dev", "lo", "table", "134", "protocol", "137"}, ""};
  for (const auto& [program, input] : {Extra{rule, ""}, elsewhere, in_legacy, policy_rule, route}) {
    ns.must(program, input);
    ASSERT_EQ(ns.program(asked("verify")).exit_code, 6) << ::testing::PrintToString(program);
    expect_all_or_error(asked("verify"));
    if (HasFailure()) return;
    ns.must(asked("apply"));
    ASSERT_EQ(ns.program(asked("verify")).exit_code, 0) << ::testing::PrintToString(program);
  }
}

INSTANTIATE_TEST_SUITE_P(, DisturbedReading, ::testing::ValuesIn(backends), backend_name);

}  // namespace
}  // namespace sidetrack::netns
