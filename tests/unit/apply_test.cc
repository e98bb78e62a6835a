// SPDX-License-Identifier: GPL-2.0-or-later
#include "sidetrack/apply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_backend.h"
#include "sidetrack/diff.h"
#include "usual_config.h"

namespace sidetrack {
namespace {

class ApplyTest : public ::testing::Test {
 protected:
  FakeBackend backend;
  FakeRoutes routes;
  Plan wanted = plan(injected(), dual_stack());

  ExitCode failure() {
    try {
      apply(wanted, backend, routes);
    } catch (const Error& error) {
      return error.code();
    }
    return ExitCode::done;
  }
};

TEST_F(ApplyTest, TheSecondTimeChangesNothing) {
  EXPECT_EQ(apply(wanted, backend, routes), Applied::changed);
  EXPECT_EQ(routes.routing, wanted.routing);
  EXPECT_EQ(apply(wanted, backend, routes), Applied::unchanged);
  EXPECT_EQ(backend.replaced, 1);
}

TEST_F(ApplyTest, ForceRewritesEqualRules) {
  apply(wanted, backend, routes);
  EXPECT_EQ(apply(wanted, backend, routes, true), Applied::changed);
  EXPECT_EQ(backend.replaced, 2);
}

TEST_F(ApplyTest, OtherOptionsTakeThePlaceOfTheFirst) {
  apply(wanted, backend, routes);
  Config other = injected();
  other.mode = Mode::tproxy;
  wanted = plan(other, {});
  apply(wanted, backend, routes);
  EXPECT_TRUE(equal(backend.live, wanted.ruleset));
  EXPECT_EQ(routes.routing, wanted.routing);
}

TEST_F(ApplyTest, AFailureLeavesRulesAndRoutesAsTheyWere) {
  backend.before_replace = [] { throw Error(ExitCode::kernel_lacks, "no owner match"); };
  EXPECT_EQ(failure(), ExitCode::kernel_lacks);
  EXPECT_EQ(routes.routing, Routing{});
  EXPECT_TRUE(backend.live.chains.empty());
}

TEST_F(ApplyTest, ReadsAgainWhenSomebodyElseChangedTheRules) {
  int disturbances = 3;
  backend.before_replace = [&] {
    if (disturbances-- > 0) ++backend.live.generation;
  };
  EXPECT_EQ(failure(), ExitCode::done);
  EXPECT_TRUE(equal(backend.live, wanted.ruleset));
}

TEST_F(ApplyTest, GivesUpAsBusyWhenTheChangesDoNotEnd) {
  backend.before_replace = [&] { ++backend.live.generation; };
  EXPECT_EQ(failure(), ExitCode::busy);
}

TEST_F(ApplyTest, KeepsTheRoutesOfRulesThatWereCommitted) {
  Config other = injected();
  other.mode = Mode::tproxy;
  wanted = plan(other, {});
  ASSERT_NE(wanted.routing, Routing{});
  backend.after_replace = [](Live& live) {
    live.chains.front().rules.clear();  // somebody else, right after the commit
    live.generation += 2;
  };
  EXPECT_EQ(failure(), ExitCode::busy);
  EXPECT_EQ(routes.routing, wanted.routing);
}

TEST_F(ApplyTest, FailsWhenTheKernelHoldsOtherRulesThanWereSent) {
  backend.after_replace = [](Live& live) { live.chains.front().rules.clear(); };
  EXPECT_EQ(failure(), ExitCode::failed);
}

TEST_F(ApplyTest, IsBusyWhenSomebodyElseChangedTheRulesRightAfter) {
  backend.after_replace = [](Live& live) {
    live.chains.front().rules.clear();
    ++live.generation;
  };
  EXPECT_EQ(failure(), ExitCode::busy);
}

}  // namespace
}  // namespace sidetrack
