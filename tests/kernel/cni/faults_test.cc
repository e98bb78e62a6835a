// SPDX-License-Identifier: GPL-2.0-or-later
// The CNI plugin killed at each of its system calls, and each failing in turn: a call that succeeded has done all, and
// whatever happened, the next ADD or DEL ends right.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/cni_node.h"
#include "support/kernel_test.h"
#include "support/listing.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::IsEmpty;

class CniFaults : public KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  using State = std::map<std::string, std::string>;

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

  // The system calls of the plugin, with how often each is made.
  [[nodiscard]] std::map<std::string, int> calls_of(const std::string& verb) const {
    begin(verb);
    const std::string trace = node.folder() + "/trace";
    EXPECT_EQ(node.call(call(verb), {"strace", "-qq", "-o", trace}).exit_code, 0);
    std::istringstream lines(node.ns().must({"cat", trace}));
    std::map<std::string, int> counts;
    for (std::string line; std::getline(lines, line);) {
      const std::size_t end = line.find('(');
      if (end != std::string::npos && !line.starts_with("execve(") && !line.starts_with("exit")) {
        ++counts[line.substr(0, end)];
      }
    }
    node.must(call("DEL"));
    return counts;
  }

  // The call, whose nth system call of that name meets with `fate`.
  [[nodiscard]] Output disturbed(const std::string& verb, const std::string& name, int nth,
                                 const std::string& fate) const {
    begin(verb);
    return node.call(call(verb),
                     {"strace", "-qq", "-o", "/dev/null", "-e", fmt::format("inject={}:{}:when={}", name, fate, nth)});
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

  CniNode node;
  Namespace pod = pod_of_cni();
  State added;
  State clean;
  std::map<std::string, std::string> recorded;
  int turn = 0;
};

TEST_P(CniFaults, KilledAtEachSystemCall) {
  int kills = 0;
  for (const char* verb : {"ADD", "DEL"}) {
    for (const auto& [name, count] : calls_of(verb)) {
      for (int nth = 1; nth <= count; ++nth) {
        const std::string what = fmt::format("{} killed at {} {}", verb, name, nth);
        if (disturbed(verb, name, nth, "signal=SIGKILL").exit_code == 128 + SIGKILL) ++kills;
        // Of rules that are there is a record, or DEL would not look.
        EXPECT_TRUE(state(pod) == clean || node.records().contains("c1")) << what;
        expect_next_ends_right(what);
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(kills, 100);
}

TEST_P(CniFaults, EachCallFailingInTurn) {
  int failures = 0;
  for (const char* verb : {"ADD", "DEL"}) {
    for (const auto& [name, count] : calls_of(verb)) {
      for (const char* error : {"EPERM", "ENOMEM"}) {
        for (int nth = 1; nth <= count; ++nth) {
          const std::string what = fmt::format("{}: {} {} fails with {}", verb, name, nth, error);
          const Output output = disturbed(verb, name, nth, fmt::format("error={}", error));
          if (output.exit_code != 0) ++failures;
          if (output.exit_code == 0 && std::string_view(verb) == "ADD") {
            EXPECT_EQ(output.out, CniNode::previous_result + "\n") << what;
            EXPECT_EQ(state(pod), added) << what;
            EXPECT_EQ(node.records(), recorded) << what;
          } else if (output.exit_code == 0) {
            EXPECT_EQ(state(pod), clean) << what;
            EXPECT_THAT(node.records(), IsEmpty()) << what;
          } else if (!output.out.empty()) {
            EXPECT_GT(code_of(output), 0) << what;
            EXPECT_NE(message_of(output), "\n") << what;
          }
          expect_next_ends_right(what);
          if (HasFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(failures, 50);
}

INSTANTIATE_TEST_SUITE_P(, CniFaults, ::testing::ValuesIn(backends), backend_name);

}  // namespace
}  // namespace sidetrack::netns
