// SPDX-License-Identifier: GPL-2.0-or-later
// What is expected of a connection that is tried.
#include <gtest/gtest.h>

#include "probe/trial.h"
#include "unit/asking.h"
#include "walk/route.h"

namespace sidetrack::probe {
namespace {

Attempt attempt_to(const char* address, std::uint16_t port) {
  return {.as = {1000, 1000}, .from = {}, .to = {*Address::parse(address), port}};
}
std::string chains_of(const Trial& trial) {
  std::string text;
  for (const Rule& rule : trial.rules) text += (text.empty() ? "" : " ") + rule.chain;
  return text;
}

// With the jumps that lead to the rule that decides.
TEST(Predict, WhereItEndsAndByWhichRules) {
  const Plan plan = planned("-i * -x 10.9.0.0/16");
  const Planned in{plan, assumed_pod(plan)};
  const Trial caught = predict(in, attempt_to("192.0.2.1", 80));
  EXPECT_EQ(caught.end, Target(Redirect{15001}));
  EXPECT_EQ(chains_of(caught), "OUTPUT ISTIO_OUTPUT ISTIO_REDIRECT");
  EXPECT_EQ(caught.unknown, "");
  const Trial excluded = predict(in, attempt_to("10.9.0.1", 80));
  EXPECT_EQ(excluded.end, Target(Verdict::accept));
  EXPECT_EQ(chains_of(excluded), "OUTPUT ISTIO_OUTPUT");
}

// Where that is not known there is nothing to compare with.
TEST(Predict, WhatIsNotKnownIsNotTried) {
  const Plan plan = planned("-i *");
  PodView pod = assumed_pod(plan);
  PolicyRule other;
  other.priority = 100;
  other.table = 9;
  other.more = "uidrange 7-9";
  pod.rules.insert(pod.rules.begin(), other);
  pod.routes.push_back({*AddressRange::parse("0.0.0.0/0"), "", Route::Kind::unreachable, 9});
  const Trial trial = predict({plan, pod}, attempt_to("192.0.2.1", 80));
  EXPECT_EQ(
      trial.unknown,
      "uid 1000 to 192.0.2.1:80: unknown: the route to 192.0.2.1: `ip rule 100: uidrange 7-9 lookup 9`: not tried");
  EXPECT_TRUE(trial.rules.empty());
  EXPECT_EQ(captured_at(trial), std::nullopt);
}

}  // namespace
}  // namespace sidetrack::probe
