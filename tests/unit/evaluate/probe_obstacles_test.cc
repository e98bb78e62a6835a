// SPDX-License-Identifier: GPL-2.0-or-later
// What of others decides about the kubelet's probes before the rules of `host-probes` do, and a probe that shows it.
#include "evaluate/probe_obstacles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evaluate/explain.h"
#include "mesh/host_probes.h"
#include "render/read_rule.h"

namespace sidetrack {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr BackendKind kind = BackendKind::iptables_nft;

Plan probes_plan(BackendKind backend = kind) {
  const auto address = [](const char* text) { return *Address::parse(text); };
  return host_probes_plan({address("169.254.7.127"),
                           address("fd16::1"),
                           Families::both(),
                           {address("10.0.0.1"), address("10.0.0.2"), address("fd00::1")}},
                          backend);
}

// A rule of another program for IPv4, the last one of its chain, which is made if there is none.
void append(Live& live, const std::string& words) {
  Rule rule = read_rule(words);
  rule.families = Family::ipv4;
  rule.table = Table::nat;
  if (words.ends_with("MASQUERADE")) rule.target = Nat{End::source, {}, {}, "MASQUERADE"};
  if (words.ends_with("SNAT --to-source 10.0.0.200")) rule.target = source_nat(*Address::parse("10.0.0.200"));
  const auto there = std::ranges::find_if(live.chains, [&](const LiveChain& chain) {
    return chain.families == Families(Family::ipv4) && chain.name == rule.chain;
  });
  const bool is_new = there == live.chains.end();
  LiveChain& chain = is_new ? live.chains.emplace_back() : *there;
  if (is_new) {
    chain.families = Family::ipv4;
    chain.name = rule.chain;
    chain.table_name = "nat";
    chain.hook = builtin_hook(Table::nat, chain.name);
  }
  chain.rules.push_back({rule, {}, false, 0});
}

std::string found(const Plan& plan, const std::vector<Live>& live) {
  std::string all;
  for (const Obstacle& obstacle : probe_obstacles(plan, assumed_pod(plan), live)) all += text(obstacle) + "\n";
  return all;
}

// With these rules of others before the jump.
std::string found_before(const std::vector<std::string>& others) {
  const Plan plan = probes_plan();
  Live live = as_live(plan.ruleset, kind);
  const auto postrouting = std::ranges::find_if(live.chains, [](const LiveChain& chain) {
    return chain.name == "POSTROUTING" && chain.families == Families(Family::ipv4);
  });
  const LiveRule jump = postrouting->rules.front();
  postrouting->rules.clear();
  const std::size_t at = static_cast<std::size_t>(postrouting - live.chains.begin());
  for (const std::string& words : others) append(live, words);
  live.chains[at].rules.push_back(jump);
  return found(plan, {live});
}

TEST(ProbeObstacles, AreRulesThatDecideFirst) {
  EXPECT_EQ(found_before({}), "");
  const std::pair<const char*, const char*> decisive[] = {
      {"-A POSTROUTING -p tcp -j SNAT --to-source 10.0.0.200",
       "rule 1 of nat POSTROUTING: -A POSTROUTING -p tcp -j SNAT --to-source 10.0.0.200: `out tcp 10.0.0.1:80 --uid 0 "
       "--gid 0` is decided about there (its source is now 10.0.0.200"},
      {"-A POSTROUTING -j MASQUERADE", "its source is now 192.0.2.2"},
      {"-A POSTROUTING -d 10.0.0.2/32 -j RETURN", "`out tcp 10.0.0.2:80 --uid 0"},
      {"-A POSTROUTING ! -d 10.0.0.1/32 -j ACCEPT", "`out tcp 10.0.0.2:80 --uid 0"},
      {"-A POSTROUTING -p tcp --dport 8080 -j MASQUERADE", "`out tcp 10.0.0.1:8080"},
      {"-A POSTROUTING -m owner --uid-owner 7 -j ACCEPT", "--uid 7"},
      {"-A POSTROUTING -m owner --gid-owner 8 -j ACCEPT", "--gid 8"},
      {"-A POSTROUTING -p tcp ! --dport 70:90 -j ACCEPT", "`out tcp 10.0.0.1:91 "},
      {"-A POSTROUTING -p tcp ! --dport 81:90 -j ACCEPT", "`out tcp 10.0.0.1:80 "},
      {"-A POSTROUTING -m cgroup --path kube/pod -j ACCEPT", "--cgroup /kube/pod`"},
      {"-A POSTROUTING -m bpf -j ACCEPT", "may be decided about there"}};
  for (const auto& [rule, expected] : decisive) {
    EXPECT_THAT(found_before({rule}), HasSubstr(expected)) << rule;
    EXPECT_THAT(found_before({rule}), HasSubstr("as requested it comes from 169.254.7.127")) << rule;
  }
}

TEST(ProbeObstacles, AreNoRulesThatAreNotAboutProbes) {
  for (const char* rule : {"-A POSTROUTING -p udp -j MASQUERADE", "-A POSTROUTING -d 10.0.0.9/32 -j ACCEPT",
                           "-A POSTROUTING -m mark --mark 0x4000/0x4000 -j MASQUERADE",
                           "-A POSTROUTING -s 172.17.0.0/16 -j RETURN", "-A POSTROUTING -p tcp -j LOG"}) {
    EXPECT_EQ(found_before({rule}), "") << rule;
  }
}

TEST(ProbeObstacles, AreFoundInTheChainsThatOthersJumpTo) {
  const std::vector<std::string> others{"-A POSTROUTING -d 10.0.0.2/32 -j OTHERS",
                                        "-A OTHERS -p tcp --dport 9090 -j ACCEPT", "-A OTHERS -j RETURN"};
  EXPECT_THAT(found_before(others), HasSubstr("rule 1 of nat OTHERS"));
  EXPECT_THAT(found_before(others), HasSubstr("`out tcp 10.0.0.2:9090"));
  EXPECT_EQ(found_before({others.front(), others.back()}), "");
}

// What is deeper is not looked at, which is said.
TEST(ProbeObstacles, AreFoundSixteenChainsDeep) {
  const auto found_in = [](int depth) {
    std::vector<std::string> rules{"-A POSTROUTING -j C1"};
    for (int i = 1; i < depth; ++i) rules.push_back("-A C" + std::to_string(i) + " -j C" + std::to_string(i + 1));
    rules.push_back("-A C" + std::to_string(depth) + " -d 10.0.0.2/32 -j SNAT --to-source 10.0.0.200");
    return found_before(rules);
  };
  EXPECT_THAT(found_in(16), AllOf(HasSubstr("rule 1 of nat C16"), HasSubstr("`out tcp 10.0.0.2:80")));
  EXPECT_THAT(found_in(17), HasSubstr("rules of other programs beyond the first "));
}

TEST(ProbeObstacles, AreRulesInOurChainBeforeOurs) {
  const Plan plan = probes_plan();
  Live live = as_live(plan.ruleset, kind);
  append(live, "-A ISTIO_POSTRT -d 10.0.0.2/32 -j RETURN");
  EXPECT_EQ(found(plan, {live}), "");
  for (LiveChain& chain : live.chains) {
    if (chain.name == "ISTIO_POSTRT") std::ranges::reverse(chain.rules);
  }
  EXPECT_THAT(found(plan, {live}),
              AllOf(HasSubstr("rule 1 of nat ISTIO_POSTRT: -A ISTIO_POSTRT -d 10.0.0.2/32 -j RETURN"),
                    HasSubstr("`out tcp 10.0.0.2:80 --uid 0")));
}

TEST(ProbeObstacles, AreRulesThatExemptFromTracking) {
  const Plan plan = probes_plan();
  const auto with = [&](const char* words) {
    Live live = as_live(plan.ruleset, kind);
    LiveChain& raw = live.chains.emplace_back();
    raw.families = Family::ipv4;
    raw.table = Table::raw;
    raw.table_name = "raw";
    raw.name = "OUTPUT";
    raw.hook = builtin_hook(Table::raw, "OUTPUT");
    Rule rule = read_rule(words);
    rule.families = Family::ipv4;
    rule.table = Table::raw;
    rule.target = Notrack{};
    raw.rules.push_back({rule, {}, false, 0});
    return found(plan, {live});
  };
  EXPECT_THAT(with("-A OUTPUT -d 10.0.0.2/32 -j NOTRACK"),
              AllOf(HasSubstr("rule 1 of raw OUTPUT"), HasSubstr("`out tcp 10.0.0.2:80"), HasSubstr("exempt from")));
  EXPECT_EQ(with("-A OUTPUT -d 10.0.0.9/32 -j NOTRACK"), "");
}

TEST(ProbeObstacles, AreNoRulesBehindOurs) {
  const Plan plan = probes_plan();
  Live live = as_live(plan.ruleset, kind);
  append(live, "-A POSTROUTING -j MASQUERADE");
  EXPECT_EQ(found(plan, {live}), "");
}

// Each of these rules is asked about by a probe of its own.
TEST(ProbeObstacles, AreLookedForUpToALimitThatIsSaid) {
  const Plan plan = probes_plan();
  const auto behind_ours = [&](int rules) {
    Live live = as_live(plan.ruleset, kind);
    for (int port = 1; port <= rules; ++port)
      append(live, "-A POSTROUTING -p tcp --dport " + std::to_string(port) + " -j MASQUERADE");
    return found(plan, {live});
  };
  EXPECT_EQ(behind_ours(400), "");
  EXPECT_THAT(behind_ours(500), HasSubstr("rules of other programs beyond the first "));
}

TEST(ProbeObstacles, AreLookedForInSoManyRulesAtMost) {
  const Plan plan = probes_plan();
  const auto beside = [&](std::size_t rules) {
    Live live = as_live(plan.ruleset, kind);
    for (const LiveChain& ours : live.chains) rules -= ours.rules.size();
    append(live, "-A OUTPUT -j LOG");
    LiveChain& output = live.chains.back();
    output.rules.resize(rules, output.rules.front());
    return found(plan, {live});
  };
  EXPECT_EQ(beside(200'000), "");
  EXPECT_THAT(beside(200'001), HasSubstr("rules of other programs beyond the first "));
}

TEST(ProbeObstacles, AreChainsOfLowerPriority) {
  for (const BackendKind backend : all_backends) {
    const Plan plan = probes_plan(backend);
    Live others;
    others.backend = BackendKind::nftables;
    append(others, "-A POSTROUTING -p tcp -j MASQUERADE");
    others.chains.front().table_name = "inet other";
    const auto with = [&](std::int32_t priority) {
      others.chains.front().hook->priority = priority;
      return found(plan, {as_live(plan.ruleset, backend), others});
    };
    EXPECT_THAT(with(50), HasSubstr("is decided about there")) << name(backend);
    EXPECT_THAT(with(100), HasSubstr("may be decided about there")) << name(backend);
    EXPECT_EQ(with(150), "") << name(backend);
  }
}

}  // namespace
}  // namespace sidetrack
