// SPDX-License-Identifier: GPL-2.0-or-later
// How `doctor` asks the backends, and what it makes of their answers.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>
#include <map>

#include "doctor/doctor.h"
#include "rule/iptables.h"
#include "unit/fake_kernel.h"

namespace sidetrack {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

// Says what it is told to of the rules that it is asked about.
class Answering : public FakeKernel {
 public:
  using Answer = std::function<void(BackendKind, const Ruleset&)>;  // may throw
  explicit Answering(Answer answer) : answer_(std::move(answer)) {}
  std::vector<std::string> check(std::span<const Change> changes) override {
    answer_(changes.front().seen->backend, *changes.front().wanted);
    return FakeKernel::check(changes);
  }

 private:
  Answer answer_;
};

using Answer = std::function<void(const Ruleset&)>;

// Of iptables-nft, with a rule of ours and two of others; the other backends cannot be asked.
Diagnosis diagnosed(const Answer& answer) {
  Answering kernel([&](BackendKind, const Ruleset& rules) { answer(rules); });
  kernel.routes.routing.policy_rules = {fwmark_rule(Family::ipv4, 1337, 133)};
  kernel.instead[BackendKind::nftables] = Unreadable{Error(ExitCode::not_permitted, "not allowed", "allow it")};
  kernel.instead[BackendKind::iptables_legacy] = Absent{Error(ExitCode::kernel_lacks, "not there", "load it")};
  LiveChain chain;
  chain.rules.resize(3);
  chain.rules.front().ours = true;
  kernel.backends[BackendKind::iptables_nft].live.chains = {chain};
  HostState host;
  host.kernel = "6.1";
  host.ipv6.in_kernel = true;
  return diagnose(kernel, host, {"/run/lock", "held by nobody", ""}, kernel.routes);
}
BackendState asked(const Answer& answer) { return diagnosed(answer).backends.at(1); }

bool is_about(const Ruleset& rules, const Target& target) {
  return std::ranges::any_of(rules.rules, [&](const Rule& rule) { return rule.target == target; });
}

TEST(Diagnose, WhatIsThereAndWhatIsNot) {
  const Diagnosis found = diagnosed([](const Ruleset&) {});
  EXPECT_EQ(found.host.kernel, "6.1");
  EXPECT_EQ(found.lock.holder, "held by nobody");
  EXPECT_EQ(found.routing.policy_rules.size(), 1U);
  ASSERT_EQ(found.backends.size(), 3U);
  const BackendState& legacy = found.backends[0];
  EXPECT_EQ(legacy.problem, "not there");
  EXPECT_EQ(legacy.remedy, "load it");
  EXPECT_TRUE(legacy.permitted);
  EXPECT_FALSE(usable(legacy));
  EXPECT_FALSE(found.backends[2].permitted);
  const BackendState& nft = found.backends[1];
  EXPECT_EQ(nft.problem, "");
  EXPECT_EQ(nft.rules_of_sidecar, 1U);
  EXPECT_EQ(nft.rules_of_others, 2U);
  EXPECT_THAT(nft.unchecked, ElementsAre("whether it rains"));
  EXPECT_TRUE(usable(nft));
  EXPECT_EQ(nft.features.size(), 10U);
}

// What is asked of each, and what it costs if it is missing.
TEST(Diagnose, AsksEachBackendForWhatItsRulesNeed) {
  std::map<BackendKind, Ruleset> wanted;
  Answering kernel([&](BackendKind kind, const Ruleset& rules) { wanted[kind] = rules; });
  kernel.instead[BackendKind::iptables_legacy] = Absent{};  // no table of it exists, and it could be used
  const Diagnosis found = diagnose(kernel, HostState(), {}, kernel.routes);
  const auto text = [&](BackendKind kind) {
    const BackendState& state = *std::ranges::find(found.backends, kind, &BackendState::kind);
    std::string all = "\n";
    for (std::size_t i = 0; i < state.features.size(); ++i) {
      const Feature& each = state.features[i];
      all += fmt::format("{} ({}){}: {}\n  {}\n", each.name, each.need, each.essential ? "!" : "", each.cost,
                         iptables_words(wanted[kind].rules.at(i)));
      EXPECT_EQ(each.available, found.families);
    }
    return all;
  };
  const std::string of_iptables = R"(
owner (owner, meta skuid)!: this backend cannot be used
  -A OUTPUT -m owner --uid-owner 1337 -j RETURN
REDIRECT (REDIRECT, redir)!: this backend cannot be used
  -A OUTPUT -p tcp -j REDIRECT --to-ports 15001
multiport (multiport): DNS capture (--redirect-dns, --capture-all-dns) fails; everything else works
  -A OUTPUT -p tcp -m multiport --dports 53,15008 -j RETURN
TPROXY (TPROXY, tproxy): -m TPROXY fails; -m REDIRECT works
  -A PREROUTING -p tcp -j TPROXY --tproxy-mark 1337/0xffffffff --on-port 15006
conntrack (conntrack, ct state): --drop-invalid and -m TPROXY fail; -m REDIRECT works
  -A PREROUTING -m conntrack --ctstate INVALID -j DROP
mark (mark, meta mark): -m TPROXY fails; -m REDIRECT works
  -A PREROUTING -p tcp -m mark --mark 1337 -j RETURN
MARK (MARK, meta mark set): -m TPROXY fails; -m REDIRECT works
  -A PREROUTING -p udp -j MARK --set-mark 1337
connmark (connmark, ct mark): -m TPROXY fails; -m REDIRECT works
  -A OUTPUT -p tcp -m connmark --mark 1337 -j RETURN
CONNMARK (CONNMARK, ct mark set): -m TPROXY fails; -m REDIRECT works
  -A PREROUTING -p tcp -i lo -j CONNMARK --save-mark
CT (CT, ct zone set): DNS capture (--redirect-dns, --capture-all-dns) fails; everything else works
  -A OUTPUT -p udp --dport 53 -j CT --zone 1
)";
  EXPECT_EQ(text(BackendKind::iptables_nft), of_iptables);
  EXPECT_EQ(text(BackendKind::iptables_legacy), of_iptables);
  EXPECT_EQ(text(BackendKind::nftables), R"(
meta skuid (owner, meta skuid)!: this backend cannot be used
  -A OUTPUT -m owner --uid-owner 1337 -j RETURN
redir (REDIRECT, redir)!: this backend cannot be used
  -A OUTPUT -p tcp -j REDIRECT --to-ports 15001
set (set): lists (-b, -d, -o, -q, …) fail in this backend
  -A OUTPUT -p tcp -m multiport --dports 53,15008 -j RETURN
interval set (interval set): lists of ranges (-i, -x) fail in this backend
  -A OUTPUT -p udp -m multiport --dports 53,15000:15008 -j RETURN
nat in inet (nat in inet)!: this backend cannot be used
  -A OUTPUT -j RETURN
tproxy (TPROXY, tproxy): -m TPROXY fails; -m REDIRECT works
  -A PREROUTING -p tcp -j TPROXY --tproxy-mark 1337/0xffffffff --on-port 15006
ct state (conntrack, ct state): --drop-invalid and -m TPROXY fail; -m REDIRECT works
  -A PREROUTING -m conntrack --ctstate INVALID -j DROP
meta mark (mark, meta mark): -m TPROXY fails; -m REDIRECT works
  -A PREROUTING -p tcp -m mark --mark 1337 -j RETURN
meta mark set (MARK, meta mark set): -m TPROXY fails; -m REDIRECT works
  -A PREROUTING -p udp -j MARK --set-mark 1337
ct mark (connmark, ct mark): -m TPROXY fails; -m REDIRECT works
  -A OUTPUT -p tcp -m connmark --mark 1337 -j RETURN
ct mark set (CONNMARK, ct mark set): -m TPROXY fails; -m REDIRECT works
  -A PREROUTING -p tcp -i lo -j CONNMARK --save-mark
ct zone set (CT, ct zone set): DNS capture (--redirect-dns, --capture-all-dns) fails; everything else works
  -A OUTPUT -p udp --dport 53 -j CT --zone 1
)");
  EXPECT_NE(found.automatic, BackendKind::nftables) << "iptables comes first";
}

// A table that cannot be looked into may hold rules of the sidecar: nat and mangle, not every one.
TEST(Diagnose, KnowsWhereRulesMayHide) {
  Diagnosis found;
  found.legacy_tables.reset();
  EXPECT_TRUE(may_hide_rules(found)) << "nothing is known";
  found.legacy_tables = {"nat (ipv4)"};
  EXPECT_FALSE(may_hide_rules(found));
  BackendState& nft = found.backends.emplace_back();
  nft.kind = BackendKind::iptables_nft;
  nft.permitted = false;
  EXPECT_FALSE(may_hide_rules(found));
  BackendState& legacy = found.backends.emplace_back();
  legacy.kind = BackendKind::iptables_legacy;
  legacy.permitted = true;
  EXPECT_FALSE(may_hide_rules(found)) << "it can be read";
  legacy.permitted = false;
  EXPECT_TRUE(may_hide_rules(found));
  found.legacy_tables = {"security (ipv4)", "mangle (ipv6)"};
  EXPECT_TRUE(may_hide_rules(found));
  found.legacy_tables = {"security (ipv4)"};
  EXPECT_FALSE(may_hide_rules(found));
  found.legacy_tables->clear();
  EXPECT_FALSE(may_hide_rules(found));
}

// All at once, if nothing is missing: refusals take time.
TEST(Diagnose, AsksOnceIfAllIsThere) {
  int times = 0;
  const BackendState state = asked([&](const Ruleset&) { ++times; });
  EXPECT_EQ(times, 1);
  EXPECT_THAT(state.features, Each(Field(&Feature::refusal, "")));
}

TEST(Diagnose, AsksOneByOneWhatIsMissing) {
  const BackendState state = asked([](const Ruleset& rules) {
    if (is_about(rules, CtZone{1})) throw Error(ExitCode::kernel_lacks, "no CT", "load CT");
  });
  EXPECT_TRUE(usable(state)) << "without DNS capture";
  for (const Feature& each : state.features) {
    const bool missing = each.name == "CT";
    EXPECT_EQ(each.available.empty(), missing) << each.name;
    EXPECT_EQ(each.refusal, missing ? "no CT" : "");
    EXPECT_EQ(each.remedy, missing ? "load CT" : "");
  }
}

TEST(Diagnose, SaysWhichFamilyLacksIt) {
  const BackendState state = asked([](const Ruleset& rules) {
    for (const Rule& rule : rules.rules) {
      if (rule.target == Target(Redirect{15001}) && rule.families.contains(Family::ipv6))
        throw Error(ExitCode::kernel_lacks, "no REDIRECT of IPv6", "load it");
    }
  });
  const auto redirect = std::ranges::find(state.features, std::string("REDIRECT"), &Feature::name);
  ASSERT_NE(redirect, state.features.end());
  EXPECT_EQ(redirect->available, Families(Family::ipv4));
  EXPECT_EQ(redirect->refusal, "no REDIRECT of IPv6");
  EXPECT_TRUE(usable(state)) << "for IPv4";
}

// What another program writes meanwhile is met by asking again, but not for ever.
TEST(Diagnose, AsksAgainIfTheRulesChangeMeanwhile) {
  int times = 0;
  const BackendState changed = asked([&](const Ruleset&) {
    if (++times < 10) throw Error(ExitCode::busy, "changed");
  });
  EXPECT_EQ(times, 10);
  EXPECT_TRUE(usable(changed));
  EXPECT_THAT(changed.features, Each(Field(&Feature::refusal, "")));
  const BackendState never = asked([](const Ruleset&) { throw Error(ExitCode::busy, "changed"); });
  EXPECT_FALSE(usable(never));
  EXPECT_THAT(never.features, Each(Field(&Feature::refusal, "changed")));
}

// A right that is missing is no feature that is missing.
TEST(Diagnose, WithoutPermissionNothingIsKnownOfTheFeatures) {
  for (const bool at_once : {true, false}) {
    const BackendState state = asked([&](const Ruleset& rules) {
      if (at_once || rules.rules.size() == 1) throw Error(ExitCode::not_permitted, "not allowed", "allow it");
      throw Error(ExitCode::kernel_lacks, "something");
    });
    EXPECT_FALSE(state.permitted);
    EXPECT_EQ(state.problem, "not allowed");
    EXPECT_EQ(state.remedy, "allow it");
    EXPECT_THAT(state.features, IsEmpty());
    EXPECT_FALSE(usable(state));
  }
}

}  // namespace
}  // namespace sidetrack
