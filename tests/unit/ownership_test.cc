// SPDX-License-Identifier: GPL-2.0-or-later
#include "analyse/ownership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sidetrack/error.h"
#include "sidetrack/render.h"
#include "usual_config.h"

namespace sidetrack {
namespace {

const ProtocolMatch tcp{Protocol::tcp, false};
InterfaceMatch in(const char* name) { return {Direction::in, name, false}; }
InterfaceMatch out(const char* name) { return {Direction::out, name, false}; }

void add(std::vector<LiveChain>& chains, Table table, const char* chain, std::vector<Match> matches = {},
         Target target = Verdict::return_, Family family = Family::ipv4) {
  auto found = std::ranges::find_if(chains, [&](const LiveChain& there) {
    return there.families == family && there.table == table && there.name == chain;
  });
  if (found == chains.end())
    found = chains.insert(found, {family, table, chain, false, {}, Verdict::accept, builtin_hook(table, chain)});
  found->rules.push_back({{family, table, chain, std::move(matches), std::move(target), {}, {}}, {}, false, 0});
}

// The rules that are ours, as text.
std::vector<std::string> ours(std::vector<LiveChain> chains) {
  mark_ours(chains);
  std::vector<std::string> result;
  for (const LiveChain& chain : chains) {
    for (const LiveRule& live : chain.rules) {
      if (live.ours) result.push_back(iptables_words(live.rule));
    }
  }
  return result;
}

using Words = std::vector<std::string>;

TEST(Ownership, ChainsByNameAndWhatJumpsThere) {
  std::vector<LiveChain> chains;
  add(chains, Table::nat, "OUTPUT", {}, Jump{"ISTIO_OUTPUT"});
  add(chains, Table::nat, "OUTPUT", {}, Jump{"DOCKER"});
  add(chains, Table::nat, "ISTIO_OUTPUT", {tcp, PortMatch{End::destination, {{80, 80}}, false}}, Verdict::return_);
  add(chains, Table::nat, "ISTIO_OUTPUT", {UnknownMatch{"-m string [rev 1, 4 bytes: 61]"}});
  add(chains, Table::nat, "DOCKER", {tcp}, Jump{"ISTIO_REDIRECT"});
  add(chains, Table::nat, "DOCKER", {tcp}, Jump{"ISTIO_REDIRECT", true});
  add(chains, Table::nat, "DOCKER", {tcp}, Jump{"OTHER", true});
  add(chains, Table::nat, "ISTIO_OUTPUT", {tcp, CommentMatch{"mine"}}, Jump{"ISTIO_REDIRECT"});
  add(chains, Table::nat, "ISTIO_CUSTOM", {tcp}, Jump{"ISTIO_REDIRECT"});
  add(chains, Table::nat, "OUTPUT", {}, Jump{"ISTIO_CUSTOM"});
  add(chains, Table::nat, "OUTPUT", {ProtocolMatch{Protocol::udp, false}}, Jump{"ISTIO_OUTPUT"});
  add(chains, Table::filter, "ISTIO_OUTPUT", {tcp}, Jump{"ISTIO_REDIRECT"});
  EXPECT_EQ(ours(chains), (Words{"-A OUTPUT -j ISTIO_OUTPUT", "-A ISTIO_OUTPUT -p tcp --dport 80 -j RETURN"}));
  mark_ours(chains);
  EXPECT_FALSE(chains[0].ours);
  EXPECT_TRUE(chains[1].ours);
  EXPECT_FALSE(chains[2].ours) << "DOCKER";
  EXPECT_FALSE(chains[3].ours) << "ISTIO_CUSTOM";
  EXPECT_FALSE(chains[4].ours) << "filter";
  EXPECT_FALSE(is_wholly_ours(chains[1]));
}

TEST(Ownership, AChainThatSomebodyElseJumpsToCannotGo) {
  Live live;
  live.backend = BackendKind::iptables_nft;
  add(live.chains, Table::nat, "ISTIO_REDIRECT", {tcp}, Redirect{15001});
  add(live.chains, Table::nat, "ISTIO_IN_REDIRECT", {tcp}, Redirect{15006});
  add(live.chains, Table::nat, "DOCKER", {tcp}, Jump{"ISTIO_REDIRECT"});
  mark_ours(live.chains);
  Ruleset asked;
  asked.rules.push_back({Family::ipv4, Table::nat, "OUTPUT", {}, Jump{"ISTIO_REDIRECT"}, {}, {}});
  EXPECT_NO_THROW(require_removable(live, asked));
  asked.rules.front().families = Family::ipv6;
  try {
    require_removable(live, asked);
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failed);
    EXPECT_THAT(error.what(), testing::HasSubstr("-A DOCKER -p tcp -j ISTIO_REDIRECT"));
  }
}

TEST(Ownership, NothingWithoutIstioChainsInTheFamily) {
  std::vector<LiveChain> chains;
  add(chains, Table::nat, "PREROUTING", {in("eth1")});
  add(chains, Table::nat, "OUTPUT", {out("eth1")});
  EXPECT_EQ(ours(chains), Words{});
  add(chains, Table::nat, "ISTIO_REDIRECT", {tcp}, Redirect{15001}, Family::ipv6);
  EXPECT_EQ(ours(chains), Words{"-A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001"}) << "the other family's";
  add(chains, Table::raw, "ISTIO_OUTPUT_DNS");
  EXPECT_EQ(ours(chains).size(), 3u) << "the chain, but no rule in it";
}

TEST(Ownership, ExcludedInterfacesArePairs) {
  std::vector<LiveChain> chains;
  add(chains, Table::nat, "ISTIO_OUTPUT");
  add(chains, Table::nat, "OUTPUT", {out("eth1")});
  add(chains, Table::mangle, "PREROUTING", {in("eth1")});
  add(chains, Table::mangle, "PREROUTING", {in("eth2")});
  add(chains, Table::mangle, "OUTPUT", {out("eth2")});
  EXPECT_EQ(ours(chains),
            (Words{"-A ISTIO_OUTPUT -j RETURN", "-A PREROUTING -i eth2 -j RETURN", "-A OUTPUT -o eth2 -j RETURN"}));
}

TEST(Ownership, AnyWordMoreIsSomebodyElse) {
  std::vector<LiveChain> chains;
  add(chains, Table::nat, "ISTIO_OUTPUT");
  add(chains, Table::nat, "PREROUTING", {in("eth1"), tcp});
  add(chains, Table::nat, "PREROUTING", {InterfaceMatch{Direction::in, "eth1", true}});
  add(chains, Table::nat, "PREROUTING", {in("eth1")}, Verdict::accept);
  add(chains, Table::nat, "PREROUTING", {in("eth1"), CommentMatch{"mine"}});
  add(chains, Table::nat, "OUTPUT", {tcp, MarkMatch{1337}}, Connmark::save);
  add(chains, Table::mangle, "PREROUTING", {MarkMatch{1337}}, Connmark::save);
  add(chains, Table::mangle, "PREROUTING", {tcp, MarkMatch{1337, 0xff}}, Connmark::save);
  add(chains, Table::mangle, "OUTPUT", {tcp, ConnmarkMatch{1337}}, Connmark::save);
  EXPECT_EQ(ours(chains), Words{"-A ISTIO_OUTPUT -j RETURN"});
}

// Everything that any step of the plan writes is recognised.
TEST(Ownership, WhateverWePlan) {
  Config config = injected();
  config.exclude_interfaces = {"eth1", "eth2"};
  config.virtual_interfaces = {"vm0"};
  config.drop_invalid = true;
  config.redirect_dns = config.capture_all_dns = true;
  for (Mode mode : {Mode::redirect, Mode::tproxy}) {
    config.mode = mode;
    const Plan planned = plan(config, dual_stack());
    for (Family family : {Family::ipv4, Family::ipv6}) {
      std::vector<LiveChain> chains;
      for (const Rule& rule : planned.ruleset.rules) {
        if (rule.families.contains(family)) {
          add(chains, rule.table, rule.chain.c_str(), rule.matches, rule.target, family);
        }
      }
      add(chains, Table::nat, "OUTPUT", {tcp}, Jump{"KUBE-SERVICES"});
      mark_ours(chains);
      for (const LiveChain& chain : chains) {
        for (const LiveRule& live : chain.rules) {
          EXPECT_EQ(live.ours, live.rule.target != Target(Jump{"KUBE-SERVICES"})) << iptables_words(live.rule);
        }
      }
    }
  }
}

}  // namespace
}  // namespace sidetrack
