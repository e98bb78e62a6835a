// SPDX-License-Identifier: GPL-2.0-or-later
// What `apply --confirm` puts back, and what it says if it cannot. Who confirms is the matter of
// tests/kernel/state/confirm_test.cc.
#include "apply/restore.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "apply/diff.h"
#include "unit/fake_kernel.h"
#include "unit/usual_config.h"

namespace sidetrack {
namespace {

using enum BackendKind;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class RollBack : public ::testing::Test {
 protected:
  FakeKernel kernel;
  const Plan older = plan_with(16001);
  const Plan newer = plan_with(15001);

  static Plan plan_with(std::uint16_t port) {
    Config config = injected();
    config.proxy_port = port;
    config.mode = Mode::tproxy;
    return plan(config, dual_stack());
  }
  void program(BackendKind kind, const Plan& what) {
    kernel.backends[kind].replace(kernel.backends[kind].live, canonical(kind, what.ruleset));
    kernel.routes.routing = what.routing;
  }
  bool holds(BackendKind kind, const Plan& what) {
    return equal(kernel.backends[kind].live, canonical(kind, what.ruleset));
  }
  void put_back(const Snapshot& before) {
    restore(before, kernel, [](const std::string& said) { ADD_FAILURE() << said; });
  }
  std::optional<Error> refused(const Snapshot& before) {
    try {
      put_back(before);
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "it succeeded";
    return std::nullopt;
  }
};

TEST_F(RollBack, PutsBackWhatWasThere) {
  for (const BackendKind was : all_backends) {
    for (const BackendKind is : all_backends) {
      kernel.backends.clear();
      for (const BackendKind kind : all_backends) kernel.backends[kind].live.backend = kind;
      program(was, older);
      const Snapshot before = snapshot(kernel.survey());
      program(was, {});
      program(is, newer);
      put_back(before);
      for (const BackendKind kind : all_backends)
        EXPECT_TRUE(holds(kind, kind == was ? older : Plan{})) << name(kind) << " of " << name(was) << ", " << name(is);
      EXPECT_EQ(kernel.routes.routing, older.routing);
    }
  }
}

// It was absent, or is by now.
TEST_F(RollBack, ABackendThatIsGoneComesBack) {
  for (const BackendKind kind : all_backends) {
    program(kind, older);
    const Snapshot before = snapshot(kernel.survey());
    kernel.backends[kind].live = {};
    kernel.backends[kind].live.backend = kind;
    kernel.instead[kind] = Absent{};
    kernel.backends[kind].after_replace = [&](Live&) { kernel.instead.clear(); };
    put_back(before);
    EXPECT_TRUE(holds(kind, older)) << name(kind);
  }
}

TEST_F(RollBack, WhoeverChangesRulesInBetweenIsMetAgain) {
  program(iptables_nft, older);
  const Snapshot before = snapshot(kernel.survey());
  program(iptables_nft, newer);
  int disturbances = 9;
  kernel.backends[iptables_nft].before_replace = [&] {
    if (disturbances-- > 0) ++kernel.backends[iptables_nft].live.generation;
  };
  put_back(before);
  EXPECT_TRUE(holds(iptables_nft, older));
}

TEST_F(RollBack, SaysWhatIsStillThereIfItCannot) {
  program(iptables_nft, older);
  const Snapshot before = snapshot(kernel.survey());
  program(iptables_nft, newer);
  int attempts = 0;
  kernel.backends[iptables_nft].before_replace = [&] {
    ++attempts;
    throw Error(ExitCode::busy, "changed meanwhile");
  };
  const auto busy = refused(before);
  EXPECT_EQ(attempts, 10);
  EXPECT_EQ(busy->code(), ExitCode::busy);
  EXPECT_THAT(busy->what(),
              AllOf(StartsWith("cannot roll back: changed meanwhile; what was not confirmed is still there: "
                               "iptables-nft: table nat, chain ISTIO_"),
                    EndsWith("not requested: -A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001")));
  EXPECT_EQ(busy->hint(), "'sidetrack clean' removes all rules and routes of the mesh");
  EXPECT_TRUE(holds(iptables_nft, newer));

  kernel.backends[iptables_nft].before_replace = [&] {
    ++attempts;
    throw Error(ExitCode::failed, "no memory");
  };
  const auto failed = refused(before);
  EXPECT_EQ(attempts, 11) << "it is not tried again";
  EXPECT_EQ(failed->code(), ExitCode::failed);
  EXPECT_THAT(failed->what(), StartsWith("cannot roll back: no memory; what was not confirmed is still there: "));
}

TEST_F(RollBack, SaysIfAllIsAsItWasAllTheSame) {
  program(iptables_nft, older);
  const Snapshot before = snapshot(kernel.survey());
  program(iptables_nft, newer);
  kernel.after_commit = [] { throw Error(ExitCode::failed, "no answer"); };
  EXPECT_STREQ(refused(before)->what(), "cannot roll back: no answer; everything is as it was");
}

// Whoever had rules among those of others has them there again.
TEST_F(RollBack, RulesStandWhereTheyStoodAmongThoseOfOthers) {
  for (const BackendKind kind : all_backends) {
    program(kind, older);
    Survey survey = kernel.survey();
    auto& live = std::get<Live>(survey.of(kind));
    const auto output = std::ranges::find(live.chains, "OUTPUT", &LiveChain::name);
    ASSERT_NE(output, live.chains.end());
    LiveRule others;
    others.rule.chain = "OUTPUT";
    output->rules.insert(output->rules.begin(), 2, others);
    output->rules.push_back(others);
    output->rules.push_back(output->rules[2]);
    output->rules.back().rule.insert_at = 1;
    const Snapshot all = snapshot(survey);
    const Ruleset& taken = all.rules[static_cast<std::size_t>(kind)];
    std::vector<std::string> places;
    for (const Rule& rule : taken.rules) {
      if (rule.chain != "OUTPUT" || rule.table != output->table || rule.families != output->rules[2].rule.families)
        continue;
      places.push_back(fmt::format("{} {}", rule.after_others ? fmt::format("{}", *rule.after_others) : "-",
                                   rule.insert_at ? fmt::format("{}", *rule.insert_at) : "-"));
    }
    const bool own_table = kind == nftables;
    EXPECT_EQ(taken.folded, own_table);
    if (!own_table) {
      ASSERT_GT(places.size(), 1U);
      EXPECT_EQ(places.back(), "3 -");
      places.pop_back();
      EXPECT_THAT(places, ::testing::Each("2 -"));
    }
    kernel.backends[kind].live = {};
    kernel.backends[kind].live.backend = kind;
  }
}

TEST_F(RollBack, WhatAnAgentMadeIsNotTakenOver) {
  Survey survey = FakeKernel().survey();
  auto& live = std::get<Live>(survey.of(nftables));
  live.chains.push_back({Families::both(), Table::nat, "OUTPUT", false, {}});
  live.chains.back().table_name = "inet istio-ambient-nat";
  static_cast<void>(snapshot(survey));
  live.chains.back().ours = true;
  live.chains.back().table_name = "inet sidetrack";
  static_cast<void>(snapshot(survey));
  live.chains.back().table_name = "inet istio-ambient-nat";
  try {
    static_cast<void>(snapshot(survey));
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "the table inet istio-ambient-nat of an agent could not be put back as it is; nothing was changed");
    EXPECT_EQ(error.hint(), "leave out --confirm");
  }
}

TEST_F(RollBack, SaysIfNotAllIsAsItWas) {
  program(iptables_nft, older);
  const Snapshot before = snapshot(kernel.survey());
  program(iptables_nft, newer);
  kernel.backends[iptables_nft].after_replace = [](Live& live) { live.chains.front().rules.clear(); };
  const auto rules = refused(before);
  EXPECT_EQ(rules->code(), ExitCode::failed);
  EXPECT_THAT(rules->what(), AllOf(StartsWith("rolled back, but not everything is as it was: iptables-nft: table "),
                                   HasSubstr(": missing: ")));
  EXPECT_THAT(rules->hint(), HasSubstr("'sidetrack show' lists what is there"));

  kernel.backends[iptables_nft].after_replace = [](Live&) {};
  program(iptables_nft, newer);
  kernel.routes.routing = {};
  const Snapshot nothing = snapshot(FakeKernel().survey());
  kernel.routes.routing = newer.routing;
  kernel.before_remove = [] { throw Error(ExitCode::failed, "no route to be removed"); };
  EXPECT_THAT(refused(nothing)->what(), EndsWith("is still there: routes or policy rules were left"));
}

// ---- Who confirms

// What is said after these letters have come and the input has ended, or a signal.
std::string confirmed(const std::string& letters, int signal = 0, bool ends = false) {
  AwaitedSignals signals(AwaitedSignals::Which::all);
  int pipe_ends[2];
  EXPECT_EQ(pipe2(pipe_ends, O_CLOEXEC), 0);
  EXPECT_EQ(write(pipe_ends[1], letters.data(), letters.size()), static_cast<ssize_t>(letters.size()));
  if (ends) close(pipe_ends[1]);
  if (signal != 0) raise(signal);
  const auto most = letters.find('\n') == std::string::npos ? std::chrono::milliseconds(20) : std::chrono::minutes(10);
  std::string said = await_confirmation(signals, most, pipe_ends[0]);
  close(pipe_ends[0]);
  if (!ends) close(pipe_ends[1]);
  return said.empty() ? "confirmed" : said;
}

TEST(Confirmation, IsALineOrASignal) {
  for (const char* line : {"\n", "y\n", "Y\n", "yes\n", "YES\r\n", "\r\n", "yes\nno\n"})
    EXPECT_EQ(confirmed(line), "confirmed") << line;
  const std::string endless = std::string(63, ' ') + "\n";
  for (const std::string& line : {std::string("n\n"), std::string("no\n"), std::string("ye\n"), std::string("yess\n"),
                                  std::string(" \n"), std::string("no\ny\n"), endless, "y" + endless})
    EXPECT_EQ(confirmed(line), "not confirmed") << line;
  EXPECT_EQ(confirmed("", SIGUSR1), "confirmed");
  EXPECT_EQ(confirmed("", SIGTERM), "ended by SIGTERM");
  EXPECT_EQ(confirmed("", SIGHUP), "ended by SIGHUP");
}

TEST(Confirmation, IsAwaitedForATime) {
  const auto start = AwaitedSignals::Clock::now();
  EXPECT_EQ(confirmed("yes"), "not confirmed within 0.02 s");
  EXPECT_EQ(confirmed("yes", 0, true), "not confirmed within 0.02 s") << "the end of the input is no line";
  EXPECT_EQ(confirmed("", 0, true), "not confirmed within 0.02 s");
  EXPECT_GE(AwaitedSignals::Clock::now() - start, std::chrono::milliseconds(60));
  EXPECT_EQ(confirmed("yes\n", 0, true), "confirmed");
}

}  // namespace
}  // namespace sidetrack
