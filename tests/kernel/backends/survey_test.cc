// SPDX-License-Identifier: GPL-2.0-or-later
// All that is there at once, and the locks of whoever writes.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/file.h>

#include <cstdlib>

#include "kernel/kernel.h"
#include "mesh/istio_rules.h"
#include "model/error.h"
#include "rule/iptables.h"
#include "support/backend_test.h"
#include "unit/asking.h"
#include "unit/temporary_folder.h"

namespace sidetrack::netns {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Ruleset nothing;

struct SurveyTest : KernelTest {
  const testing::TemporaryFolder folder;
  const std::string lock_file = folder.path() / "xtables.lock";
  Namespace space;

  void SetUp() override {
    KernelTest::SetUp();
    setenv("XTABLES_LOCKFILE", lock_file.c_str(), 1);
    if (!IsSkipped() && !HasFatalFailure()) space.must({"ip", "link", "set", "lo", "up"});
  }
  void TearDown() override { unsetenv("XTABLES_LOCKFILE"); }

  void shell(const std::string& commands) const { space.must({"sh", "-ec", commands}); }
  [[nodiscard]] Survey survey(const KernelOptions& options = {}) const {
    return space.run([&] { return open_kernel(istio_rules, options)->survey(); });
  }
  // Whether another program could take it.
  [[nodiscard]] bool is_locked() const {
    const FileDescriptor file(::open(lock_file.c_str(), O_RDONLY | O_CLOEXEC));
    return file.get() >= 0 && flock(file.get(), LOCK_EX | LOCK_NB) != 0;
  }
};

TEST_F(SurveyTest, OfANewNamespace) {
  const Survey seen = survey();
  EXPECT_TRUE(std::holds_alternative<Absent>(seen.of(BackendKind::iptables_legacy)));
  for (const BackendKind kind : {BackendKind::iptables_nft, BackendKind::nftables}) {
    ASSERT_NE(seen.live(kind), nullptr);
    EXPECT_EQ(seen.live(kind)->backend, kind);
    EXPECT_THAT(seen.live(kind)->chains, IsEmpty());
  }
  EXPECT_FALSE(seen.legacy_in_use);
  EXPECT_EQ(seen.routing, Routing{});
  EXPECT_FALSE(seen.pod);
  EXPECT_EQ(first_unreadable(seen), nullptr);
  EXPECT_THAT(seen.of_agents, IsEmpty());
}

TEST_F(SurveyTest, LegacyTablesAreInUseIfTheyHoldAnything) {
  shell("iptables-legacy -t mangle -S");  // makes the table
  const Survey empty = survey();
  ASSERT_NE(empty.live(BackendKind::iptables_legacy), nullptr);
  EXPECT_EQ(empty.live(BackendKind::iptables_legacy)->backend, BackendKind::iptables_legacy);
  EXPECT_FALSE(empty.legacy_in_use);
  shell("iptables-legacy -t mangle -N OTHERS");
  EXPECT_TRUE(survey().legacy_in_use);
  shell("iptables-legacy -t mangle -X OTHERS; ip6tables-legacy -t filter -A OUTPUT -j ACCEPT");
  EXPECT_TRUE(survey().legacy_in_use);
}

// In iptables Istio's agent makes the same of an ambient pod: the policy rule tells who did.
TEST_F(SurveyTest, RulesOfAnAmbientPodAreOursByTheirPolicyRule) {
  const Plan plan = planned("--dataplane ambient --ip-families ipv4");
  const Ruleset wanted = canonical(BackendKind::iptables_nft, plan.ruleset);
  space.run([&] {
    const auto kernel = open_kernel(istio_rules, {.write = true});
    const Survey before = kernel->survey();
    EXPECT_EQ(kernel->add(plan.routing), plan.routing);
    const Change change[] = {{before.live(BackendKind::iptables_nft), &wanted, EqualRules::keep}};
    kernel->commit(change);
    const Survey ours = kernel->survey();
    EXPECT_THAT(ours.of_agents, IsEmpty());
    EXPECT_TRUE(holds_ours(*ours.live(BackendKind::iptables_nft)));
    EXPECT_TRUE(holds_ours(kernel->read(change).at(0)));
    EXPECT_THAT(kernel->warnings(), IsEmpty());
    kernel->remove(plan.routing);
    const Survey theirs = kernel->survey();
    EXPECT_THAT(theirs.of_agents, ElementsAre(BackendKind::iptables_nft));
    EXPECT_FALSE(holds_ours(*theirs.live(BackendKind::iptables_nft)));
    EXPECT_FALSE(holds_ours(kernel->read(change).at(0)));
    EXPECT_THAT(kernel->warnings(),
                ElementsAre(HasSubstr("iptables-nft: the rules of an ambient pod, which an agent")));
  });
  const Survey claimed = survey({.agent_rules = AgentRules::ours});
  EXPECT_THAT(claimed.of_agents, IsEmpty());
  EXPECT_TRUE(holds_ours(*claimed.live(BackendKind::iptables_nft)));
}

// The kernel has its number alone.
TEST_F(SurveyTest, TheSetsThatRulesAskAreNamed) {
  for (const std::string tool : {"iptables-legacy", "iptables-nft"}) {
    const Namespace inside;
    inside.must({"sh", "-ec",
                 "ipset create other hash:ip; ipset create nets hash:net; ipset add nets 10.1.0.0/16;" + tool +
                     " -A OUTPUT -m set ! --match-set nets dst -j DROP"});
    const Survey seen = inside.run([] { return open_kernel(istio_rules, {})->survey(); });
    const BackendKind kind = tool == "iptables-nft" ? BackendKind::iptables_nft : BackendKind::iptables_legacy;
    const LiveChain* output = seen.live(kind)->find(Family::ipv4, Table::filter, "OUTPUT");
    ASSERT_NE(output, nullptr) << tool;
    EXPECT_EQ(iptables_words(output->rules.at(0).rule), "-A OUTPUT -m set ! --match-set nets dst -j DROP") << tool;
  }
}

// Interfaces and routes are asked for where others' rules, or their routes, may matter.
TEST_F(SurveyTest, ThePodIsLookedAtIfOthersMayMatter) {
  const char* const all[][2] = {
      {"iptables-legacy -A OUTPUT -p udp -j DROP", "iptables-legacy -F OUTPUT"},
      {"iptables-nft -A OUTPUT -p udp -j DROP", "nft delete table ip filter"},
      {"nft 'add table inet t; add chain inet t c { type filter hook output priority 0; policy drop; }'",
       "nft delete table inet t"},
      {"ip rule add pref 100 lookup 77", "ip rule del pref 100"},
  };
  for (const auto& [made, undone] : all) {
    shell(made);
    EXPECT_TRUE(survey().pod) << made;
    shell(undone);
    EXPECT_FALSE(survey().pod) << undone;
  }
}

// From one place to the other, in one step.
TEST_F(SurveyTest, ReadsWhatItCommitted) {
  const Ruleset wanted = planned("-i * --ip-families ipv4").ruleset;
  space.run([&] {
    const auto kernel = open_kernel(istio_rules, {.write = true});
    const Survey before = kernel->survey();
    const auto change = [&](const Survey& seen, BackendKind kind, const Ruleset& rules) {
      return Change{seen.live(kind), &rules, EqualRules::keep};
    };
    const Ruleset of_nft = canonical(BackendKind::iptables_nft, wanted);
    const Change first[] = {change(before, BackendKind::iptables_nft, of_nft)};
    EXPECT_THAT(kernel->check(first), IsEmpty());
    EXPECT_FALSE(holds_ours(kernel->read(first).at(0))) << "a check changes nothing";
    kernel->commit(first);
    const std::vector<Live> after = kernel->read(first);
    ASSERT_EQ(after.size(), 1U);
    EXPECT_EQ(after[0].backend, BackendKind::iptables_nft);
    EXPECT_TRUE(holds_ours(after[0]));

    const Survey then = kernel->survey();
    const Ruleset native = canonical(BackendKind::nftables, wanted);
    const Change moved[] = {change(then, BackendKind::nftables, native),
                            change(then, BackendKind::iptables_nft, nothing)};
    kernel->commit(moved);
    const std::vector<Live> both = kernel->read(moved);
    ASSERT_EQ(both.size(), 2U);
    EXPECT_EQ(both[0].backend, BackendKind::nftables);
    EXPECT_TRUE(holds_ours(both[0]));
    EXPECT_EQ(both[1].backend, BackendKind::iptables_nft);
    EXPECT_FALSE(holds_ours(both[1]));
  });
  EXPECT_THAT(survey().live(BackendKind::iptables_nft)->chains, IsEmpty());
}

TEST_F(SurveyTest, LegacyRulesAreCheckedAndWritten) {
  const Ruleset wanted = canonical(BackendKind::iptables_legacy, planned("-i * --ip-families ipv4").ruleset);
  space.run([&] {
    const auto kernel = open_kernel(istio_rules, {.write = true});
    static_cast<void>(kernel->survey());
    Live none;
    none.backend = BackendKind::iptables_legacy;
    const Change change[] = {{&none, &wanted, EqualRules::keep}};
    EXPECT_THAT(kernel->check(change), ElementsAre(HasSubstr("whether the kernel has nat"), HasSubstr("in its place")));
    EXPECT_FALSE(is_locked());
    kernel->commit(change);
    EXPECT_TRUE(is_locked());
    const std::vector<Live> after = kernel->read(change);
    ASSERT_EQ(after.size(), 1U);
    EXPECT_EQ(after[0].backend, BackendKind::iptables_legacy);
    EXPECT_TRUE(holds_ours(after[0]));
    kernel->release_locks();
    EXPECT_FALSE(is_locked());
  });
  EXPECT_TRUE(survey().legacy_in_use);
  EXPECT_FALSE(is_locked()) << "to read takes none";
  space.run([&] {
    const auto kernel = open_kernel(istio_rules, {.write = true});
    static_cast<void>(kernel->survey());
    EXPECT_TRUE(is_locked()) << "what is seen is to be written";
    const auto without = open_kernel(istio_rules, {.xtables_lock = false});
    EXPECT_NO_THROW(static_cast<void>(without->survey()));
  });
}

TEST_F(SurveyTest, TheLockOfXtablesIsWaitedForWhereItsTablesAreWritten) {
  const Ruleset wanted = canonical(BackendKind::iptables_legacy, planned("-i * --ip-families ipv4").ruleset);
  const FileDescriptor held(::open(lock_file.c_str(), O_CREAT | O_RDONLY | O_CLOEXEC, 0600));
  ASSERT_EQ(flock(held.get(), LOCK_EX), 0);
  const auto commit = [&](const KernelOptions& options) {
    return error_in(space, [&] {
      const auto kernel = open_kernel(istio_rules, options);
      static_cast<void>(kernel->survey());
      Live none;
      none.backend = BackendKind::iptables_legacy;
      const Change change[] = {{&none, &wanted, EqualRules::keep}};
      kernel->commit(change);
    });
  };
  const KernelOptions impatient{.write = true, .wait = milliseconds(20)};
  EXPECT_EQ(commit(impatient).code(), ExitCode::busy);
  EXPECT_TRUE(std::holds_alternative<Absent>(survey().of(BackendKind::iptables_legacy))) << "no table was made";
  KernelOptions without = impatient;
  without.xtables_lock = false;
  EXPECT_EQ(commit(without).code(), ExitCode::done);
  EXPECT_EQ(commit(impatient).code(), ExitCode::busy) << "before it looks";
}

// One writer of Sidetrack at a time, unless it lets others.
TEST_F(SurveyTest, TheNamespaceIsLockedToWrite) {
  space.run([] {
    const KernelOptions writing{.write = true, .wait = milliseconds(20)};
    const auto code = [&] {
      try {
        return open_kernel(istio_rules, writing)->warnings().empty() ? ExitCode::done : ExitCode::failed;
      } catch (const Error& error) {
        return error.code();
      }
    };
    const auto kernel = open_kernel(istio_rules, writing);
    EXPECT_EQ(kernel->deadline().wait(), milliseconds(20));
    EXPECT_EQ(code(), ExitCode::busy);
    EXPECT_NO_THROW(static_cast<void>(open_kernel(istio_rules, {})->survey()));
    kernel->release_locks();
    EXPECT_EQ(code(), ExitCode::done);
    const auto until = kernel->deadline().until();
    kernel->take_locks();
    EXPECT_GT(kernel->deadline().until(), until) << "a new deadline";
    EXPECT_EQ(code(), ExitCode::busy);
    kernel->begin_confirmation();
    kernel->release_locks();
    const auto other = open_kernel(istio_rules, writing);
    EXPECT_THAT(other->warnings(), ElementsAre(HasSubstr("another 'apply --confirm' is waiting")));
    EXPECT_THROW(other->begin_confirmation(), Error);
    EXPECT_THAT(kernel->warnings(), IsEmpty());
  });
}

}  // namespace
}  // namespace sidetrack::netns
