// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/host_probes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mesh/catalogue.h"
#include "mesh/fold.h"
#include "mesh/ownership.h"
#include "model/iptables.h"

namespace sidetrack {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Address address(const char* text) { return *Address::parse(text); }

HostProbes asked(std::vector<Address> pods) {
  return {address("169.254.7.127"), address("fd16::1"), Families::both(), std::move(pods)};
}

TEST(HostProbesPlan, IsThatOfIstiosAgent) {
  const Plan plan = host_probes_plan(asked({address("10.0.0.2"), address("10.0.0.1"), address("10.0.0.2")}),
                                     BackendKind::iptables_nft);
  EXPECT_EQ(iptables_restore(plan.ruleset, Family::ipv4),
            "*nat\n"
            "-N ISTIO_POSTRT\n"
            "-I POSTROUTING 1 -j ISTIO_POSTRT\n"
            "-A ISTIO_POSTRT -m owner --socket-exists -p tcp -m set --match-set istio-inpod-probes-v4 dst "
            "-j SNAT --to-source 169.254.7.127\n"
            "COMMIT\n");
  EXPECT_EQ(iptables_restore(plan.ruleset, Family::ipv6),
            "*nat\n"
            "-N ISTIO_POSTRT\n"
            "-I POSTROUTING 1 -j ISTIO_POSTRT\n"
            "-A ISTIO_POSTRT -m owner --socket-exists -p tcp -m set --match-set istio-inpod-probes-v6 dst "
            "-j SNAT --to-source fd16::1\n"
            "COMMIT\n");
  EXPECT_THAT(ip_commands(plan.routing),
              ElementsAre("ipset create istio-inpod-probes-v4 hash:ip family inet comment",
                          "ipset create istio-inpod-probes-v6 hash:ip family inet6 comment",
                          "ipset add istio-inpod-probes-v4 10.0.0.1", "ipset add istio-inpod-probes-v4 10.0.0.2"));
}

TEST(HostProbesPlan, HasTheAddressesInItsRulesInNftables) {
  const Plan plan = host_probes_plan(asked({address("10.0.0.1")}), BackendKind::nftables);
  EXPECT_EQ(plan.routing, Routing{});
  ASSERT_EQ(plan.ruleset.rules.size(), 2U);  // none of IPv6, which has no address
  EXPECT_EQ(iptables_words(plan.ruleset.rules[1]),
            "-A ISTIO_POSTRT -m owner --socket-exists -p tcp -d 10.0.0.1/32 -j SNAT --to-source 169.254.7.127");
  EXPECT_EQ(fold(plan.ruleset).rules.size(), 2U);
}

TEST(HostProbesPlan, LeavesOutAFamilyThatIsNotAskedFor) {
  HostProbes only_ipv4 = asked({address("10.0.0.1"), address("fd00::1")});
  only_ipv4.families = Family::ipv4;
  const Plan plan = host_probes_plan(only_ipv4, BackendKind::iptables_legacy);
  EXPECT_EQ(iptables_restore(plan.ruleset, Family::ipv6), "");
  EXPECT_EQ(plan.routing.sets.size(), 1U);
  EXPECT_EQ(plan.routing.set_entries.size(), 1U);
}

// Of both families, each once, in their order; wherever the backend has them.
TEST(HostProbesPlan, KnowsItsPods) {
  for (const BackendKind backend : all_backends) {
    const Plan plan = host_probes_plan(
        asked({address("fd00::1"), address("10.0.0.9"), address("10.0.0.1"), address("10.0.0.9")}), backend);
    EXPECT_THAT(pods_of(plan), ElementsAre(address("10.0.0.1"), address("10.0.0.9"), address("fd00::1")));
    EXPECT_THAT(pods_of(host_probes_plan(asked({}), backend)), IsEmpty());
  }
}

TEST(HostProbesPlan, SaysWhyItsRulesAreThere) {
  for (const BackendKind backend : {BackendKind::iptables_nft, BackendKind::nftables}) {
    const Plan plan = host_probes_plan(asked({address("fd00::1")}), backend);
    const Reason reason = reason_of(plan.ruleset.rules.back());
    EXPECT_EQ(reason.flag, "--probe-address6 fd16::1");
    EXPECT_EQ(reason.sentence, "what a process of the node sends to a pod in ambient mode comes from fd16::1");
  }
}

// What the kernel holds, as it is read: without the reasons of the plan.
std::vector<LiveChain> live_chains(const Ruleset& ruleset) {
  std::vector<LiveChain> chains;
  for (const Chain& chain : sidetrack::chains(ruleset, Table::nat, Family::ipv4)) {
    LiveChain& live = chains.emplace_back();
    live.families = Family::ipv4;
    live.table = Table::nat;
    live.name = chain.name;
    for (const Rule* rule : chain.rules) {
      live.rules.push_back({*rule, {}, false, 0, 0});
      live.rules.back().rule.origin = {};
    }
  }
  return chains;
}

TEST(HostProbesPlan, IsOursOnTheNodeAndOthersInAPod) {
  std::vector<LiveChain> chains =
      live_chains(host_probes_plan(asked({address("10.0.0.1")}), BackendKind::iptables_nft).ruleset);
  mark_ours(chains, RulesOf::host_probes);
  for (const LiveChain& chain : chains) EXPECT_TRUE(std::ranges::all_of(chain.rules, &LiveRule::ours)) << chain.name;
  mark_ours(chains);
  for (const LiveChain& chain : chains) {
    EXPECT_FALSE(chain.ours);
    EXPECT_TRUE(std::ranges::none_of(chain.rules, &LiveRule::ours)) << chain.name;
  }
}

TEST(HostProbesPlan, TakesNoOtherRuleForItsOwn) {
  Ruleset others = host_probes_plan(asked({}), BackendKind::iptables_nft).ruleset;
  std::get<SetMatch>(others.rules[1].matches.back()).name = "mine";
  std::vector<LiveChain> chains = live_chains(others);
  chains.back().rules.push_back(chains.back().rules.front());
  chains.back().rules.back().rule.target = Verdict::accept;
  mark_ours(chains, RulesOf::host_probes);
  const auto chain = std::ranges::find(chains, "ISTIO_POSTRT", &LiveChain::name);
  ASSERT_NE(chain, chains.end());
  EXPECT_TRUE(chain->ours);
  EXPECT_TRUE(std::ranges::none_of(chain->rules, &LiveRule::ours));
  EXPECT_FALSE(is_wholly_ours(*chain));
}

}  // namespace
}  // namespace sidetrack
