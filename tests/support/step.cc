// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/step.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "support/network.h"
#include "support/traffic.h"
#include "support/words.h"

namespace sidetrack::netns {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

const Words older_options{"-b", "80", "-p", "16001"};
const Words newer_options{"-b", "*", "-m", "TPROXY", "-d", "15021"};

Words apply(const char* backend, const Words& options) {
  Words result{program_under_test(), "apply", "--backend", backend, "--ip-families", "ipv4,ipv6", "-i", "*"};
  result.insert(result.end(), options.begin(), options.end());
  return result;
}

Words clean() { return {program_under_test(), "clean"}; }

Namespace with_loopback() {
  Namespace made;
  ip(made, "link set lo up\n");
  trust_addresses(made);
  return made;
}

}  // namespace

std::vector<Step> steps() {
  std::vector<Step> all;
  for (const char* from : backends) {
    for (const char* to : backends) all.push_back({from, to});
    all.push_back({from, nullptr});
  }
  return all;
}

std::string step_name(const ::testing::TestParamInfo<Step>& tested) {
  const auto [from, to] = tested.param;
  std::string name = std::string(from != nullptr ? from : "nothing") +
                     (to != nullptr ? std::string("_to_") + to : std::string("_cleaned"));
  std::ranges::replace(name, '-', '_');
  return name;
}

void StepTest::SetUp() {
  KernelTest::SetUp();
  if (IsSkipped() || HasFatalFailure()) return;
  ns = with_loopback();
  begin();
  ns.must(words());
  new_state = state(ns);
  ns.must(clean());
  begin();
  old_state = state(ns);
}

Words StepTest::words() { return GetParam().to != nullptr ? apply(GetParam().to, newer_options) : clean(); }

bool StepTest::stays() {
  const auto [from, to] = GetParam();
  return from != nullptr && to != nullptr && std::string_view(from) == to;
}

void StepTest::begin() {
  if (GetParam().from == nullptr) {
    ns = with_loopback();  // a table of legacy iptables that was touched stays, if empty
  } else {
    // Clean is to find routes, too.
    ns.must(apply(GetParam().from, GetParam().to != nullptr ? older_options : newer_options));
  }
}

void StepTest::restart() {
  begin();
  EXPECT_EQ(state(ns), old_state);
}

StepTest::State StepTest::judge(const Output& output, const std::string& what) const {
  State now = state(ns);
  if (output.exit_code == 0) {
    EXPECT_EQ(now, new_state) << what << "\n" << output.err;
    return now;
  }
  EXPECT_LE(output.exit_code, 5) << what << "\n" << output.err;
  EXPECT_THAT(output.err, HasSubstr("error")) << what;
  if (now == old_state) return now;
  EXPECT_THAT(output.err, AnyOf(HasSubstr("rules are in"), HasSubstr("are still in"), HasSubstr("still there"),
                                HasSubstr("is not known"), HasSubstr("could not be put"),
                                HasSubstr("could not be removed"), HasSubstr("were removed")))
      << what << "\n"
      << ::testing::PrintToString(now);
  const Output again = ns.program(words());
  EXPECT_EQ(again.exit_code, 0) << what << "\n" << again.err;
  EXPECT_EQ(state(ns), new_state) << what;
  return now;
}

}  // namespace sidetrack::netns
