// SPDX-License-Identifier: GPL-2.0-or-later
// What is carried out, and what stands when something fails on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <set>

#include "apply/apply.h"
#include "apply/choice.h"
#include "apply/diff.h"
#include "library/sentences.h"
#include "unit/fake_kernel.h"
#include "unit/usual_config.h"

namespace sidetrack {
namespace {

using enum BackendKind;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ConvergeTest : public ::testing::Test {
 protected:
  FakeKernel kernel;
  Config config = with_tproxy();
  ApplyOptions options;
  Plan wanted = plan(config, dual_stack());

  static Config with_tproxy() {
    Config config = injected();
    config.mode = Mode::tproxy;
    return config;
  }
  static Plan older() {
    Config config = injected();
    config.proxy_port = 16001;
    return plan(config, dual_stack());
  }

  [[nodiscard]] Request request() const { return {.plan = &wanted, .options = &options}; }
  ApplyResult apply() { return converge(request(), kernel); }
  ApplyResult clean() { return converge({}, kernel); }
  std::optional<Error> refused(const std::function<void()>& act) {
    try {
      act();
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "it succeeded";
    return std::nullopt;
  }
  std::string failure(ExitCode code) {
    const auto error = refused([&] { apply(); });
    if (!error) return "";
    EXPECT_EQ(error->code(), code) << error->what();
    return error->what();
  }

  void program(BackendKind kind, const Plan& what) {
    kernel.backends[kind].replace(kernel.backends[kind].live, canonical(kind, what.ruleset));
  }
  void lacks(BackendKind kind, const std::string& what) {
    kernel.backends[kind].before_replace = [what] { throw Error(ExitCode::kernel_lacks, what).as_of_one_backend(); };
  }
  [[nodiscard]] std::vector<BackendKind> holders() {
    std::vector<BackendKind> found;
    for (auto& [kind, backend] : kernel.backends) {
      if (holds_ours(backend.live)) found.push_back(kind);
    }
    return found;
  }
  static std::vector<LiveChain> programmed_chains() {
    FakeBackend backend;
    backend.replace(backend.live, canonical(iptables_legacy, older().ruleset));
    return backend.live.chains;
  }
  bool holds(BackendKind kind, const Plan& what) {
    return equal(kernel.backends[kind].live, canonical(kind, what.ruleset));
  }
};

TEST_F(ConvergeTest, TheSecondTimeChangesNothing) {
  EXPECT_EQ(apply().applied, Applied::changed);
  EXPECT_EQ(kernel.routes.routing, wanted.routing);
  EXPECT_TRUE(holds(iptables_nft, wanted));
  EXPECT_EQ(apply().applied, Applied::unchanged);
  EXPECT_EQ(kernel.backends[iptables_nft].replaced, 1);
}

// -m NONE
// In a program of others four signals wait, and no other: it may live by its timers.
TEST_F(ConvergeTest, HoldsTheSignalsThatItIsToHold) {
  std::set<int> held;
  kernel.after_commit = [&] {
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    for (int signal = 1; signal < SIGRTMAX; ++signal) {
      if (sigismember(&mask, signal) == 1) held.insert(signal);
    }
  };
  apply();
  EXPECT_TRUE(held.contains(SIGALRM) && held.contains(SIGCHLD) && held.contains(SIGTERM) && !held.contains(SIGSYS));
  clean();
  held.clear();
  kernel.held = HeldSignals::Which::polite;
  apply();
  EXPECT_EQ(held, (std::set<int>{SIGTERM, SIGINT, SIGHUP, SIGQUIT}));
}

TEST_F(ConvergeTest, PassesOnWhatTheKernelWarnsOf) {
  kernel.warned = {"the lock is held"};
  EXPECT_THAT(apply().warnings, ElementsAre("the lock is held"));
  EXPECT_THAT(clean().warnings, ElementsAre("the lock is held"));
  EXPECT_THAT(check(request(), kernel).warnings, ::testing::Contains("the lock is held"));
}

TEST_F(ConvergeTest, WithoutRulesNoBackendIsNamed) {
  program(iptables_nft, older());
  wanted = Plan{};
  EXPECT_EQ(checked(check(request(), kernel)),
            "no rules are requested; apply would remove those in iptables-nft; nothing was changed");
  const ApplyResult removed = apply();
  EXPECT_EQ(removed.backend, std::nullopt);
  EXPECT_THAT(removed.left, ElementsAre(iptables_nft));
  EXPECT_THAT(holders(), IsEmpty());
  EXPECT_EQ(applied(removed), "removed all rules and routes of the mesh from iptables-nft: none are requested");

  EXPECT_EQ(applied(apply()), "nothing to change: no rules are requested, and none are there");
  const PodDiff compared = compare({.plan = &wanted, .options = &options}, kernel.survey());
  EXPECT_EQ(compared.backend, std::nullopt);
  EXPECT_EQ(verified(compared), "rules and routes are as requested");
}

TEST_F(ConvergeTest, ForceRewritesEqualRules) {
  apply();
  options.force_apply = true;
  EXPECT_EQ(apply().applied, Applied::changed);
  EXPECT_EQ(kernel.backends[iptables_nft].replaced, 2);
}

TEST_F(ConvergeTest, FallsBackAndSaysWhy) {
  lacks(iptables_nft, "no compat");
  const ApplyResult result = apply();
  EXPECT_EQ(result.backend, nftables);
  EXPECT_THAT(result.skipped, ElementsAre("not used: iptables-nft: no compat"));
  EXPECT_THAT(holders(), ElementsAre(nftables));
}

TEST_F(ConvergeTest, SaysWhatEachBackendLacks) {
  lacks(iptables_nft, "no xt owner");
  lacks(nftables, "no redir");
  lacks(iptables_legacy, "no tables");
  EXPECT_THAT(failure(ExitCode::kernel_lacks),
              AllOf(HasSubstr("iptables-nft: no xt owner"), HasSubstr("nftables: no redir"),
                    HasSubstr("iptables-legacy: no tables")));
  EXPECT_EQ(kernel.routes.routing, Routing{});
}

TEST_F(ConvergeTest, OnlyARefusalOfOneBackendIsAReasonToTryTheNext) {
  for (const Error& error : {Error(ExitCode::not_permitted, "CAP_NET_ADMIN"), Error(ExitCode::failed, "no memory"),
                             Error(ExitCode::kernel_lacks, "no IPv6 on lo")}) {
    kernel.backends[iptables_nft].before_replace = [error] { throw error; };
    EXPECT_THAT(failure(error.code()), Not(HasSubstr("no backend can")));
    EXPECT_THAT(holders(), IsEmpty());
    EXPECT_EQ(kernel.routes.routing, Routing{});
  }
}

TEST_F(ConvergeTest, BothBackendsOfNfTablesChangeTogetherOrNotAtAll) {
  options.backend = BackendKind::nftables;
  program(iptables_nft, older());
  kernel.backends[iptables_nft].before_replace = [] { throw Error(ExitCode::failed, "EBUSY"); };
  failure(ExitCode::failed);
  EXPECT_THAT(holders(), ElementsAre(iptables_nft));
  EXPECT_TRUE(holds(iptables_nft, older()));
  kernel.backends[iptables_nft].before_replace = [] {};
  EXPECT_THAT(apply().left, ElementsAre(iptables_nft));
  EXPECT_THAT(holders(), ElementsAre(nftables));
}

TEST_F(ConvergeTest, BetweenLegacyAndNfTablesTheNewRulesComeFirst) {
  options.backend = iptables_nft;  // auto would leave them where they are
  program(iptables_legacy, older());
  kernel.backends[iptables_legacy].before_replace = [&] { EXPECT_TRUE(holds(iptables_nft, wanted)); };
  EXPECT_THAT(apply().left, ElementsAre(iptables_legacy));
  EXPECT_THAT(holders(), ElementsAre(iptables_nft));
}

TEST_F(ConvergeTest, TheNewRulesGoAgainIfTheOldOnesCannot) {
  for (const auto& [from, to] : {std::pair(iptables_legacy, iptables_nft), std::pair(iptables_nft, iptables_legacy),
                                 std::pair(iptables_legacy, nftables)}) {
    kernel.backends.clear();
    for (BackendKind kind : all_backends) kernel.backends[kind].live.backend = kind;
    options.backend = to;
    program(from, older());
    kernel.backends[from].before_replace = [] { throw Error(ExitCode::failed, "no memory"); };
    EXPECT_EQ(failure(ExitCode::failed), "no memory");
    EXPECT_THAT(holders(), ElementsAre(from));
    EXPECT_TRUE(holds(from, older()));
    EXPECT_EQ(kernel.backends[to].replaced, 2);
    EXPECT_EQ(kernel.routes.routing, Routing{});
  }
}

// The chains of a backend that is left go, whatever is asked for: also those whose names are asked for elsewhere.
TEST_F(ConvergeTest, WhatLeadsToTheRulesOfABackendThatIsLeftIsNamedFirst) {
  for (const BackendKind to : {nftables, iptables_legacy}) {
    kernel.backends.clear();
    for (BackendKind kind : all_backends) kernel.backends[kind].live.backend = kind;
    options.backend = to;
    program(iptables_nft, older());
    LiveChain mine{Family::ipv4, Table::nat, "mine", false, {}};
    mine.table_name = "nat";
    mine.rules.push_back({{Family::ipv4, Table::nat, "mine", {}, Jump{"ISTIO_INBOUND"}, {}, {}}, {}, false, 0});
    kernel.backends[iptables_nft].live.chains.push_back(mine);
    kernel.surveys = 0;
    EXPECT_THAT(failure(ExitCode::failed),
                AllOf(HasSubstr("another program's rule leads to it"), HasSubstr("-A mine -j ISTIO_INBOUND")));
    EXPECT_EQ(kernel.surveys, 1);
    EXPECT_TRUE(holds(iptables_nft, older()));
    EXPECT_EQ(kernel.backends[to].replaced, 0);
    EXPECT_THAT(compare(request(), kernel.survey()).refusal, HasSubstr("-A mine -j ISTIO_INBOUND"));
    options.backend = iptables_nft;  // there they stay
    EXPECT_EQ(apply().applied, Applied::changed);
  }
}

TEST_F(ConvergeTest, AMoveThatWasRolledBackIsBegunAnewAsLongAsItIsToWait) {
  kernel.lasts = Deadline(std::chrono::minutes(10));
  options.backend = iptables_legacy;
  program(iptables_nft, older());
  int disturbances = 12;
  kernel.backends[iptables_nft].before_replace = [&] {
    if (disturbances-- > 0) throw Error(ExitCode::busy, "changed meanwhile");
  };
  apply();
  EXPECT_EQ(kernel.surveys, 13);
  EXPECT_THAT(holders(), ElementsAre(iptables_legacy));
}

TEST_F(ConvergeTest, SaysWhatStandsIfTheNewRulesCannotGoEither) {
  options.backend = iptables_nft;  // auto would leave them where they are
  program(iptables_legacy, older());
  kernel.backends[iptables_legacy].before_replace = [this] {
    kernel.backends[iptables_nft].before_replace = [] { throw Error(ExitCode::failed, "no memory again"); };
    throw Error(ExitCode::failed, "no memory");
  };
  EXPECT_EQ(failure(ExitCode::failed),
            "no memory; the requested rules are in iptables-nft, older ones still in iptables-legacy, and "
            "could not be removed again: no memory again");
  EXPECT_EQ(kernel.routes.routing, wanted.routing);
}

// Where rules of ours were before, what was committed cannot be taken back: they stay, and are named.
TEST_F(ConvergeTest, NewRulesStayIfTheyReplacedOlderOnes) {
  for (const BackendKind beside : {iptables_nft, nftables}) {
    kernel.backends.clear();
    for (BackendKind kind : all_backends) kernel.backends[kind].live.backend = kind;
    kernel.routes.routing = {};
    options.backend = nftables;
    program(beside, older());
    program(iptables_legacy, older());
    kernel.backends[iptables_legacy].before_replace = [] { throw Error(ExitCode::failed, "no memory"); };
    const auto error = refused([&] { apply(); });
    EXPECT_STREQ(error->what(), "no memory; the requested rules are in nftables, older ones still in iptables-legacy")
        << name(beside);
    EXPECT_EQ(error->hint(), "run it again when that is fixed");
    EXPECT_THAT(holders(), ElementsAre(iptables_legacy, nftables));
    EXPECT_TRUE(holds(nftables, wanted));
    EXPECT_EQ(kernel.routes.routing, wanted.routing);
  }
}

TEST_F(ConvergeTest, TellsAllThatItDid) {
  options.backend = iptables_nft;  // auto would leave them where they are
  program(iptables_legacy, older());
  const PolicyRule unwanted = fwmark_rule(Family::ipv4, 7, 133);
  kernel.routes.routing.policy_rules = {unwanted};
  const ApplyResult first = apply();
  EXPECT_EQ(first.applied, Applied::changed);
  EXPECT_EQ(first.backend, iptables_nft);
  EXPECT_THAT(first.left, ElementsAre(iptables_legacy));
  EXPECT_THAT(first.routing_removed, ElementsAre("ip rule del fwmark 7 lookup 133"));
  const int writes = kernel.backends[iptables_nft].replaced;
  EXPECT_GT(writes, 0);
  EXPECT_EQ(first.canonical.rules, canonical(iptables_nft, wanted.ruleset).rules);
  const ApplyResult again = apply();
  EXPECT_EQ(again.applied, Applied::unchanged);
  EXPECT_EQ(again.backend, iptables_nft);
  EXPECT_EQ(kernel.backends[iptables_nft].replaced, writes);
  EXPECT_THAT(again.left, IsEmpty());
  EXPECT_THAT(again.routing_removed, IsEmpty());
  EXPECT_EQ(again.canonical.rules, canonical(iptables_nft, wanted.ruleset).rules);
  // Routes alone.
  kernel.routes.routing.policy_rules.push_back(unwanted);
  const ApplyResult routes = apply();
  EXPECT_EQ(routes.applied, Applied::changed);
  EXPECT_EQ(kernel.backends[iptables_nft].replaced, writes);
  EXPECT_THAT(routes.routing_removed, ElementsAre("ip rule del fwmark 7 lookup 133"));
  kernel.routes.routing = {};
  const ApplyResult added = apply();
  EXPECT_EQ(added.applied, Applied::changed);
  EXPECT_EQ(kernel.backends[iptables_nft].replaced, writes);
  EXPECT_THAT(added.routing_removed, IsEmpty());
}

TEST_F(ConvergeTest, SaysWhyThatBackend) {
  kernel.legacy_in_use = true;
  const std::string why = choose(options, wanted.ruleset, true).because;
  EXPECT_NE(why, "");
  EXPECT_EQ(check(request(), kernel).because, why);
  EXPECT_EQ(apply().because, why);
  kernel.legacy_in_use = false;
  options.backend = iptables_legacy;
  EXPECT_EQ(apply().because, "");
}

// What was said of the attempts before is part of the error, each thing once.
TEST_F(ConvergeTest, SaysWhyItBeganAnew) {
  int attempt = 0;
  kernel.backends[iptables_nft].before_replace = [&] {
    ++attempt;
    if (attempt <= 2) throw Error(ExitCode::busy, "changed by one");
    if (attempt == 3) throw Error(ExitCode::busy, "changed by another");
    throw Error(ExitCode::failed, "no memory");
  };
  EXPECT_EQ(failure(ExitCode::failed), "no memory; restarted after: changed by one; changed by another");
  attempt = 0;
  kernel.backends[iptables_nft].before_replace = [&] { throw Error(ExitCode::busy, "changed"); };
  EXPECT_EQ(failure(ExitCode::busy), "changed");
}

TEST_F(ConvergeTest, CheckTellsWhatWouldChange) {
  apply();
  ApplyResult result = check(request(), kernel);
  EXPECT_EQ(result.applied, Applied::unchanged);
  EXPECT_EQ(result.backend, iptables_nft);
  EXPECT_EQ(result.canonical.rules, canonical(iptables_nft, wanted.ruleset).rules);
  kernel.routes.routing.policy_rules.push_back(fwmark_rule(Family::ipv4, 7, 133));
  EXPECT_EQ(check(request(), kernel).applied, Applied::changed) << "a route more";
  kernel.routes.routing = {};
  result = check(request(), kernel);
  EXPECT_EQ(result.applied, Applied::changed) << "routes that are missing";
  EXPECT_EQ(result.warnings.size(), ip_commands(wanted.routing).size());
  EXPECT_EQ(result.warnings.front(), "not checked: routing: whether the kernel accepts '" +
                                         ip_commands(wanted.routing).front() + "': only adding it shows that");
  kernel.routes.routing = wanted.routing;
  program(iptables_legacy, older());
  program(nftables, older());
  result = check(request(), kernel);
  EXPECT_EQ(result.applied, Applied::changed) << "older rules elsewhere";
  EXPECT_THAT(result.left, ElementsAre(iptables_legacy, nftables));
  EXPECT_EQ(check({}, kernel).applied, Applied::changed);
  EXPECT_EQ(check({}, kernel).backend, std::nullopt);
}

TEST_F(ConvergeTest, SaysWhatStandsIfRoutesCannotGo) {
  apply();
  wanted = older();
  config = injected();
  kernel.before_remove = [] { throw Error(ExitCode::failed, "no route to be removed"); };
  EXPECT_EQ(failure(ExitCode::failed),
            "no route to be removed; the rules are as requested, but policy rules, routes or addresses that were not "
            "requested are still there");
  EXPECT_TRUE(holds(iptables_nft, older()));
}

TEST_F(ConvergeTest, SaysThatTheRulesAreAsRequestedIfOnlyRoutesCannotGo) {
  apply();
  kernel.routes.routing.policy_rules.push_back(wanted.routing.policy_rules.front());
  kernel.before_remove = [] { throw Error(ExitCode::failed, "no route to be removed"); };
  EXPECT_EQ(failure(ExitCode::failed), "no route to be removed; the rules were as requested already");
}

TEST_F(ConvergeTest, SaysThatRoutesStandIfTheyCannotBeTakenBack) {
  kernel.backends[iptables_nft].before_replace = [] { throw Error(ExitCode::failed, "no memory"); };
  kernel.before_remove = [] { throw Error(ExitCode::failed, "no route to be removed"); };
  EXPECT_EQ(failure(ExitCode::failed),
            "no memory; routes that were added could not be removed again: no route to be removed");
  EXPECT_EQ(kernel.routes.routing, wanted.routing);
}

TEST_F(ConvergeTest, ADoubledPolicyRuleIsReducedToOne) {
  apply();
  kernel.routes.routing.policy_rules.push_back(wanted.routing.policy_rules.front());
  EXPECT_EQ(apply().applied, Applied::changed);
  EXPECT_EQ(kernel.routes.routing.policy_rules.size(), wanted.routing.policy_rules.size());
  EXPECT_EQ(apply().applied, Applied::unchanged);
}

TEST_F(ConvergeTest, SurveysAgainWhenSomebodyElseChangedTheRules) {
  int disturbances = 3;
  kernel.backends[iptables_nft].before_replace = [&] {
    if (disturbances-- > 0) ++kernel.backends[iptables_nft].live.generation;
  };
  apply();
  EXPECT_EQ(kernel.surveys, 4);
  EXPECT_TRUE(holds(iptables_nft, wanted));
}

TEST_F(ConvergeTest, GivesUpAsBusyWhenTheChangesDoNotEnd) {
  kernel.backends[iptables_nft].before_replace = [&] { ++kernel.backends[iptables_nft].live.generation; };
  failure(ExitCode::busy);
  EXPECT_EQ(kernel.routes.routing, Routing{});
}

TEST_F(ConvergeTest, BeginsAnewAsLongAsItIsToWait) {
  kernel.lasts = Deadline(std::chrono::minutes(10));
  int disturbances = 12;
  kernel.backends[iptables_nft].before_replace = [&] {
    if (disturbances-- > 0) ++kernel.backends[iptables_nft].live.generation;
  };
  apply();
  EXPECT_EQ(kernel.surveys, 13);
  EXPECT_TRUE(holds(iptables_nft, wanted));
}

TEST_F(ConvergeTest, DoesNotFightWithAProgramThatTakesAwayWhatWasCommitted) {
  kernel.lasts = Deadline(std::chrono::minutes(10));
  kernel.backends[iptables_nft].after_replace = [](Live& live) {
    live.chains.front().rules.clear();
    live.generation += 2;
  };
  failure(ExitCode::busy);
  EXPECT_EQ(kernel.surveys, 10);
}

TEST_F(ConvergeTest, KeepsTheRoutesOfRulesThatWereCommitted) {
  kernel.backends[iptables_nft].after_replace = [](Live& live) {
    live.chains.front().rules.clear();  // another program, right after the commit
    live.generation += 2;
  };
  EXPECT_THAT(failure(ExitCode::busy), HasSubstr("the committed rules are in iptables-nft"));
  EXPECT_EQ(kernel.routes.routing, wanted.routing);
}

TEST_F(ConvergeTest, FailsWhenTheKernelHoldsOtherRulesThanWereSent) {
  options.backend = iptables_nft;  // auto would leave them where they are
  program(iptables_legacy, older());
  kernel.backends[iptables_nft].after_replace = [](Live& live) { live.chains.front().rules.clear(); };
  EXPECT_THAT(failure(ExitCode::failed),
              AllOf(HasSubstr("the kernel holds other rules than were committed"),
                    HasSubstr("the committed rules are in iptables-nft, and older rules in iptables-legacy")));
  EXPECT_TRUE(holds(iptables_legacy, older()));
}

TEST_F(ConvergeTest, SaysWhichOlderRulesWentWithTheCommit) {
  options.backend = nftables;
  program(iptables_nft, older());
  kernel.backends[nftables].after_replace = [](Live& live) { live.chains.front().rules.clear(); };
  EXPECT_THAT(
      failure(ExitCode::failed),
      ::testing::EndsWith("; the committed rules are in nftables; the older rules in iptables-nft were removed"));
}

TEST_F(ConvergeTest, SaysWhatCleanHasRemovedIfSomethingIsStillThere) {
  const auto leave = [](Live& live) { live.chains = programmed_chains(); };
  program(iptables_legacy, wanted);
  kernel.backends[iptables_legacy].after_replace = leave;
  EXPECT_THAT(refused([&] { clean(); })->what(),
              ::testing::EndsWith("; the rules of the sidecar in iptables-legacy were removed"));
  program(nftables, wanted);
  EXPECT_THAT(refused([&] { clean(); })->what(),
              ::testing::EndsWith("; rules of the sidecar are still in nftables; the rules of the sidecar in "
                                  "iptables-legacy were removed"));
}

// ---- A commit whose answer is lost.

TEST_F(ConvergeTest, WhatWasCommittedAllTheSameIsDone) {
  kernel.after_commit = [] { throw Error(ExitCode::failed, "no answer"); };
  EXPECT_EQ(apply().applied, Applied::changed);
  EXPECT_TRUE(holds(iptables_nft, wanted));
  EXPECT_EQ(kernel.routes.routing, wanted.routing);
}

TEST_F(ConvergeTest, WhatIsNotKnownIsSaidAndTheRoutesStay) {
  kernel.after_commit = [] { throw Error(ExitCode::failed, "no answer"); };
  kernel.before_read = [] { throw Error(ExitCode::failed, "no answer again"); };
  EXPECT_EQ(failure(ExitCode::failed),
            "no answer; it is not known whether the old or the new rules are in place: no answer again");
  EXPECT_EQ(kernel.routes.routing, wanted.routing);
}

TEST_F(ConvergeTest, CompareSaysWhatConvergeWouldDo) {
  EXPECT_FALSE(compare(request(), kernel.survey()).equal());
  apply();
  EXPECT_TRUE(compare(request(), kernel.survey()).equal());
  program(iptables_legacy, older());
  EXPECT_FALSE(compare(request(), kernel.survey()).equal());
}

TEST_F(ConvergeTest, CheckSaysWhatConvergeWouldDoAndChangesNothing) {
  lacks(iptables_nft, "no compat");
  program(iptables_legacy, older());
  lacks(iptables_legacy, "no owner");  // where they are, and would stay
  const ApplyResult result = check(request(), kernel);
  EXPECT_EQ(result.backend, nftables);
  EXPECT_EQ(result.applied, Applied::changed);
  EXPECT_THAT(result.left, ElementsAre(iptables_legacy));
  EXPECT_THAT(result.skipped, ElementsAre("not used: iptables-legacy: no owner", "not used: iptables-nft: no compat"));
  EXPECT_THAT(result.warnings,
              ::testing::IsSupersetOf(
                  {::testing::Matcher<std::string>("not checked: whether it rains"),
                   ::testing::Matcher<std::string>(HasSubstr("not checked: routing: whether the kernel accepts"))}));
  EXPECT_EQ(kernel.backends[nftables].replaced, 0);
  EXPECT_EQ(kernel.backends[iptables_legacy].replaced, 1);
  EXPECT_EQ(kernel.routes.routing, Routing{});
}

TEST_F(ConvergeTest, CheckOfWhatIsThereAsksNothing) {
  apply();
  lacks(iptables_nft, "nothing is asked");
  const ApplyResult result = check(request(), kernel);
  EXPECT_EQ(result.applied, Applied::unchanged);
  EXPECT_THAT(result.warnings, IsEmpty());
}

TEST_F(ConvergeTest, CheckAsksAgainAfterAChangeInBetween) {
  int changes = 2;
  kernel.backends[iptables_nft].before_replace = [&] {
    kernel.backends[iptables_nft].live.generation += changes-- > 0;
  };
  EXPECT_EQ(check(request(), kernel).backend, iptables_nft);
  EXPECT_EQ(changes, -1);
}

TEST_F(ConvergeTest, CheckFailsAsConvergeDoes) {
  for (BackendKind kind : all_backends) lacks(kind, "nothing at all");
  const auto checked = refused([&] { check(request(), kernel); });
  EXPECT_EQ(failure(ExitCode::kernel_lacks), checked->what());
}

TEST_F(ConvergeTest, CleanRemovesOursEverywhere) {
  program(nftables, wanted);
  program(iptables_legacy, wanted);
  kernel.routes.routing = wanted.routing;
  EXPECT_THAT(clean().left, ElementsAre(iptables_legacy, nftables));
  EXPECT_THAT(holders(), IsEmpty());
  EXPECT_EQ(kernel.routes.routing, Routing{});
  EXPECT_EQ(clean().applied, Applied::unchanged);
}

TEST_F(ConvergeTest, CleanSaysWhatItCouldNotRemove) {
  program(nftables, wanted);
  program(iptables_legacy, wanted);
  kernel.routes.routing = wanted.routing;
  kernel.backends[nftables].before_replace = [] { throw Error(ExitCode::failed, "no memory"); };
  EXPECT_STREQ(refused([&] { clean(); })->what(),
               "no memory; rules of the sidecar are still in nftables; those in iptables-legacy are removed; policy "
               "rules, routes or addresses that were not requested are still there");
  EXPECT_EQ(kernel.routes.routing, wanted.routing);
}

}  // namespace
}  // namespace sidetrack
