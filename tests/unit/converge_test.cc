// SPDX-License-Identifier: GPL-2.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "fake_backend.h"
#include "sidetrack/apply.h"
#include "usual_config.h"

namespace sidetrack {
namespace {

using enum BackendKind;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A backend that is one of the kernel's: it stays when the one that was opened goes.
class Opened : public Backend {
 public:
  explicit Opened(FakeBackend& kernel) : kernel_(kernel) {}
  [[nodiscard]] BackendKind kind() const override { return kernel_.kind(); }
  Live read() override { return kernel_.read(); }
  using Backend::replace;
  void replace(const Live& seen, const Ruleset& wanted, EqualRules equal) override {
    kernel_.replace(seen, wanted, equal);
  }
  std::vector<std::string> check(const Live& seen, const Ruleset& wanted) override {
    return kernel_.check(seen, wanted);
  }

 private:
  FakeBackend& kernel_;
};

class ConvergeTest : public ::testing::Test {
 protected:
  ConvergeTest() {
    for (BackendKind kind : {iptables_legacy, iptables_nft, nftables}) kernel[kind].live.backend = kind;
  }
  std::map<BackendKind, FakeBackend> kernel;
  FakeRoutes routes;
  Plan wanted = plan(injected(), dual_stack());
  OpenBackend open = [this](BackendKind kind, Access) { return std::make_unique<Opened>(kernel[kind]); };
  const Choice usual_choice{{iptables_nft, nftables, iptables_legacy}, {}};

  void program(BackendKind kind) { kernel[kind].replace(kernel[kind].live, wanted.ruleset); }
  void lacks(BackendKind kind, const std::string& what) {
    kernel[kind].before_replace = [what] { throw Error(ExitCode::kernel_lacks, what); };
  }
};

TEST_F(ConvergeTest, TakesTheFirstBackendThatTheKernelAccepts) {
  EXPECT_EQ(converge(wanted, usual_choice, open, routes).backend, iptables_nft);
  lacks(iptables_nft, "no compat");
  kernel[iptables_nft].live.chains.clear();
  EXPECT_EQ(converge(wanted, usual_choice, open, routes).backend, nftables);
}

TEST_F(ConvergeTest, SaysWhatEachBackendLacks) {
  lacks(iptables_nft, "no xt owner");
  lacks(nftables, "no redir");
  lacks(iptables_legacy, "no tables");
  try {
    converge(wanted, usual_choice, open, routes);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kernel_lacks);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("iptables-nft: no xt owner"), HasSubstr("nftables: no redir"),
                                    HasSubstr("iptables-legacy: no tables")));
  }
  EXPECT_EQ(routes.routing, Routing{});
}

TEST_F(ConvergeTest, AnotherErrorIsNotAReasonToTryTheNextBackend) {
  kernel[iptables_nft].before_replace = [] { throw Error(ExitCode::not_permitted, "CAP_NET_ADMIN"); };
  EXPECT_THROW(converge(wanted, usual_choice, open, routes), Error);
  EXPECT_THAT(kernel[nftables].live.chains, IsEmpty());
}

TEST_F(ConvergeTest, RemovesOursFromOtherBackendsOnceTheNewOnesAreIn) {
  Config older = injected();
  older.proxy_port = 16001;
  kernel[iptables_legacy].replace(kernel[iptables_legacy].live, plan(older, {}).ruleset);
  kernel[iptables_legacy].before_replace = [this] { EXPECT_TRUE(holds_ours(kernel[iptables_nft].live)); };
  const Outcome outcome = converge(wanted, usual_choice, open, routes);
  EXPECT_THAT(outcome.left, ElementsAre(iptables_legacy));
  EXPECT_FALSE(holds_ours(kernel[iptables_legacy].live));
}

TEST_F(ConvergeTest, EqualRulesStayInTheBackendThatHoldsThem) {
  program(nftables);
  routes.routing = wanted.routing;
  const Outcome outcome = converge(wanted, usual_choice, open, routes);
  EXPECT_EQ(outcome.backend, nftables);
  EXPECT_EQ(outcome.applied, Applied::unchanged);
  EXPECT_FALSE(holds_ours(kernel[iptables_nft].live));
}

TEST_F(ConvergeTest, ABackendAskedForByNameGetsTheRulesThatAnotherHolds) {
  program(nftables);
  const Outcome outcome = converge(wanted, {{iptables_legacy}, {}}, open, routes);
  EXPECT_EQ(outcome.backend, iptables_legacy);
  EXPECT_THAT(outcome.left, ElementsAre(nftables));
}

TEST_F(ConvergeTest, CompareSaysWhatConvergeWouldDo) {
  EXPECT_FALSE(compare(wanted, usual_choice, open, routes).equal());
  converge(wanted, usual_choice, open, routes);
  EXPECT_TRUE(compare(wanted, usual_choice, open, routes).equal());
  program(iptables_legacy);
  EXPECT_FALSE(compare(wanted, {{iptables_nft}, {}}, open, routes).equal());
}

TEST_F(ConvergeTest, CheckSaysWhatConvergeWouldDoAndChangesNothing) {
  lacks(iptables_nft, "no compat");
  program(iptables_legacy);
  Config other = injected();
  other.proxy_port = 16001;
  const Plan asked = plan(other, dual_stack());
  const Outcome outcome = check(asked, usual_choice, open, routes);
  EXPECT_EQ(outcome.backend, nftables);
  EXPECT_EQ(outcome.applied, Applied::changed);
  EXPECT_THAT(outcome.left, ElementsAre(iptables_legacy));
  EXPECT_THAT(outcome.warnings, ElementsAre("not checked: whether it rains",
                                            HasSubstr("not checked: routing: whether the kernel takes")));
  EXPECT_EQ(kernel[nftables].replaced, 0);
  EXPECT_EQ(kernel[iptables_legacy].replaced, 1);
  EXPECT_EQ(routes.routing, Routing{});
}

TEST_F(ConvergeTest, CheckOfWhatIsThereAsksNothing) {
  converge(wanted, usual_choice, open, routes);
  lacks(iptables_nft, "nothing is asked");
  const Outcome outcome = check(wanted, usual_choice, open, routes);
  EXPECT_EQ(outcome.applied, Applied::unchanged);
  EXPECT_THAT(outcome.warnings, IsEmpty());
}

TEST_F(ConvergeTest, CheckAsksAgainAfterAChangeInBetween) {
  int changes = 2;
  kernel[iptables_nft].before_replace = [&] { kernel[iptables_nft].live.generation += changes-- > 0; };
  EXPECT_EQ(check(wanted, usual_choice, open, routes).backend, iptables_nft);
  EXPECT_EQ(changes, -1);
}

TEST_F(ConvergeTest, CheckFailsAsConvergeDoes) {
  for (BackendKind kind : {iptables_nft, nftables, iptables_legacy}) lacks(kind, "nothing at all");
  const auto error_of = [&](auto act) {
    try {
      act();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(error_of([&] { check(wanted, usual_choice, open, routes); }),
            error_of([&] { converge(wanted, usual_choice, open, routes); }));
}

TEST_F(ConvergeTest, CleanRemovesOursEverywhere) {
  program(nftables);
  program(iptables_legacy);
  routes.routing = wanted.routing;
  EXPECT_THAT(clean(open, routes).left, ElementsAre(iptables_legacy, nftables));
  for (auto& [kind, backend] : kernel) EXPECT_FALSE(holds_ours(backend.live)) << name(kind);
  EXPECT_EQ(routes.routing, Routing{});
  EXPECT_EQ(clean(open, routes).applied, Applied::unchanged);
}

}  // namespace
}  // namespace sidetrack
