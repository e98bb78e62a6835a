// SPDX-License-Identifier: GPL-2.0-or-later
// The CNI plugin killed at each of its system calls, and each failing in turn: a call that succeeded has done all, and
// whatever happened, the next ADD or DEL ends right.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <csignal>
#include <fstream>
#include <map>
#include <set>

#include "support/amount.h"
#include "support/cni_node.h"
#include "support/kernel_test.h"
#include "support/listing.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::IsEmpty;

struct SystemCall {
  std::string name;
  int nth;
};

const std::set<std::string> changing_calls{"setns",      "flock",  "write",   "renameat", "unlinkat",      "mkdir",
                                           "setsockopt", "sendto", "sendmsg", "recvfrom", "rt_sigprocmask"};

class CniFaults : public KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  using State = std::map<std::string, std::string>;
  using Records = std::map<std::string, std::string>;

  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    node.must(call("ADD"));
    added = state(pod);
    recorded = node.records();
    node.must(call("DEL"));
    clean = state(pod);
  }

  [[nodiscard]] CniCall call(const std::string& verb) const {
    return {.verb = verb,
            .pod = &pod,
            .annotations = {{"sidecar.istio.io/status", "{}"}, {"sidecar.istio.io/interceptionMode", "TPROXY"}},
            .keys = fmt::format(R"("backend": "{}", "dualStack": true)", GetParam())};
  }

  // What the call starts from.
  void begin(const std::string& verb) const {
    if (verb == "DEL") node.must(call("ADD"));
  }

  // Some of the system calls that the plugin makes from main() on: before, nothing is done. Of all backends but
  // the usual one only those that change something or depend on what others do.
  [[nodiscard]] std::vector<SystemCall> calls_of(const std::string& verb) const {
    begin(verb);
    const std::string trace = node.folder() + "/trace";
    EXPECT_EQ(node.call(call(verb), {"strace", "-qq", "-o", trace}).exit_code, 0);
    std::ifstream lines(trace);
    std::map<std::string, int> counts;
    std::vector<SystemCall> calls;
    bool in_main = false;
    int reached = 0;
    for (std::string line; std::getline(lines, line);) {
      const std::string name = line.substr(0, line.find('('));
      const int nth = ++counts[name];
      in_main = in_main || name == "poll";
      if (!in_main || name == "exit_group" || (!is_usual() && !changing_calls.contains(name))) continue;
      if (reached++ % fault_stride() == 0) calls.push_back({name, nth});
    }
    node.must(call("DEL"));
    return calls;
  }

  // The call, whose nth system call of that name meets with `fate`.
  [[nodiscard]] Output disturbed(const std::string& verb, const SystemCall& made, const std::string& fate) const {
    begin(verb);
    count_fault();
    return node.call(call(verb), {"strace", "-qq", "-o", "/dev/null", "-e",
                                  fmt::format("inject={}:{}:when={}", made.name, fate, made.nth)});
  }

  // DEL and ADD by turns, from whatever is there.
  void expect_next_ends_right(const std::string& what) {
    if (++turn % 2 == 0) {
      node.must(call("ADD"));
      EXPECT_EQ(state(pod), added) << what;
      EXPECT_EQ(node.records(), recorded) << what;
    }
    node.must(call("DEL"));
    EXPECT_EQ(state(pod), clean) << what;
    EXPECT_THAT(node.records(), IsEmpty()) << what;
  }

  [[nodiscard]] static bool is_usual() { return std::string_view(GetParam()) == "iptables-nft"; }

  CniNode node;
  Namespace pod = pod_of_cni();
  State added;
  State clean;
  Records recorded;
  int turn = 0;
};

TEST_P(CniFaults, KilledAtEachSystemCall) {
  int kills = 0;
  for (const char* verb : {"ADD", "DEL"}) {
    for (const SystemCall& made : calls_of(verb)) {
      const std::string what = fmt::format("{} killed at {} {}", verb, made.name, made.nth);
      if (disturbed(verb, made, "signal=SIGKILL").exit_code == 128 + SIGKILL) ++kills;
      // Of rules that are there is a record, or DEL would not look.
      const bool recorded_now = node.records().contains("c1");
      const bool untouched = !recorded_now && state(pod) == clean;
      EXPECT_TRUE(recorded_now || untouched) << what;
      if (!untouched || !node.records().empty()) expect_next_ends_right(what);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(kills, 50 / fault_stride());
}

TEST_P(CniFaults, EachCallFailingInTurn) {
  const bool both_errors = fault_stride() == 1;
  int failures = 0;
  int calls = 0;
  for (const char* verb : {"ADD", "DEL"}) {
    const bool adds = std::string_view(verb) == "ADD";
    for (const SystemCall& made : calls_of(verb)) {
      const bool is_memory = ++calls % 2 == 0;
      for (const char* error : {"EPERM", "ENOMEM"}) {
        const bool is_its_turn = is_memory == (std::string_view(error) == "ENOMEM");
        if (!is_its_turn && !both_errors) continue;
        const std::string what = fmt::format("{}: {} {} fails with {}", verb, made.name, made.nth, error);
        const Output output = disturbed(verb, made, fmt::format("error={}", error));
        if (output.exit_code == 0) {  // then all is done
          EXPECT_EQ(output.out, adds ? CniNode::previous_result + "\n" : "") << what;
          EXPECT_EQ(state(pod), adds ? added : clean) << what;
          EXPECT_EQ(node.records(), adds ? recorded : Records()) << what;
        } else {
          ++failures;
          // Where nothing can be said there is no answer.
          EXPECT_TRUE(output.out.empty() || message_of(output) != "\n") << what;
        }
        if (node.records().empty()) {
          EXPECT_EQ(state(pod), clean) << what;
        } else {
          expect_next_ends_right(what);
        }
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(failures, 20 / fault_stride());
}

INSTANTIATE_TEST_SUITE_P(, CniFaults, ::testing::ValuesIn(backends), backend_name);

}  // namespace
}  // namespace sidetrack::netns
