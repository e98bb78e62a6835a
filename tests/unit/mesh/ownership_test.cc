// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/ownership.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "mesh/plan.h"
#include "model/error.h"
#include "rule/fold.h"
#include "rule/iptables.h"
#include "rule/ours.h"
#include "unit/usual_config.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

const ProtocolMatch tcp{Protocol::tcp, false};
InterfaceMatch in(const char* name) { return {InterfaceDirection::in, name, false}; }
InterfaceMatch out(const char* name) { return {InterfaceDirection::out, name, false}; }

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
  EXPECT_EQ(ours(chains), (Words{"-A OUTPUT -j ISTIO_OUTPUT", "-A OUTPUT -p udp -j ISTIO_OUTPUT",
                                 "-A ISTIO_OUTPUT -p tcp --dport 80 -j RETURN"}));
  mark_ours(chains);
  EXPECT_FALSE(chains[0].ours);
  EXPECT_TRUE(chains[1].ours);
  EXPECT_FALSE(chains[2].ours) << "DOCKER";
  EXPECT_FALSE(chains[3].ours) << "ISTIO_CUSTOM";
  EXPECT_FALSE(chains[4].ours) << "filter";
  EXPECT_FALSE(is_wholly_ours(chains[1]));
}

// The rules of an ambient pod as a kernel would hold them, with chains of these names.
Live ambient_in(BackendKind backend, const std::function<std::string(const std::string&)>& named) {
  Config config = usual();
  config.dataplane = Dataplane::ambient;
  config.redirect_dns = true;
  Live live = as_live(plan(config, dual_stack()).ruleset, backend);
  for (LiveChain& chain : live.chains) {
    chain.name = named(chain.name);
    for (LiveRule& rule : chain.rules) {
      rule.ours = false;
      rule.rule.chain = chain.name;
      if (auto* jump = std::get_if<Jump>(&rule.rule.target)) jump->chain = named(jump->chain);
    }
  }
  mark_ours(live.chains);
  return live;
}
std::string of_istio(const std::string& chain) { return chain; }
std::string of_cilium(const std::string& chain) {
  return chain == "ISTIO_PRERT" ? "CILIUM_PREROUTING" : chain == "ISTIO_OUTPUT" ? "CILIUM_OUTPUT" : chain;
}

std::size_t count(const Live& live, bool LiveRule::*which) {
  std::size_t all = 0;
  for (const LiveChain& chain : live.chains)
    all += static_cast<std::size_t>(std::ranges::count(chain.rules, true, which));
  return all;
}

TEST(Ownership, AmbientRulesAreAnAgentsUnlessWeMadeThem) {
  for (const auto& named : {of_istio, of_cilium}) {
    Live live = ambient_in(BackendKind::iptables_nft, named);
    const std::size_t all = count(live, &LiveRule::ours);
    EXPECT_EQ(all, 36U);
    const bool cilium = named("ISTIO_PRERT") != "ISTIO_PRERT";
    EXPECT_EQ(leave_to_agents(live, true), cilium) << "Sidetrack makes no chains of Cilium's names";
    EXPECT_EQ(count(live, &LiveRule::ours), cilium ? 0 : all);
    EXPECT_EQ(leave_to_agents(live, false), !cilium);
    EXPECT_EQ(count(live, &LiveRule::ours), 0U);
    EXPECT_EQ(count(live, &LiveRule::of_agent), all);
    EXPECT_FALSE(leave_to_agents(live, false)) << "again";
  }
}

// Other programs may have chains of those names, and Sidetrack leaves theirs in a chain of its own.
TEST(Ownership, ANameAloneIsNoAgents) {
  for (const bool is_empty : {true, false}) {
    for (const char* name : {"ISTIO_PRERT", "CILIUM_PREROUTING", "CILIUM_OUTPUT"}) {
      Live live;
      live.backend = BackendKind::iptables_nft;
      const bool cilium = *name == 'C';
      add(live.chains, Table::nat, name, {tcp}, Verdict::accept);
      if (is_empty) live.chains.back().rules.clear();
      const bool of_output = std::string_view(name) == "CILIUM_OUTPUT";
      add(live.chains, Table::nat, of_output ? "OUTPUT" : "PREROUTING", {}, Jump{name});
      mark_ours(live.chains);
      EXPECT_FALSE(leave_to_agents(live, false)) << name;
      EXPECT_EQ(live.chains.front().ours, !cilium) << name;
      EXPECT_EQ(live.chains.back().rules.front().ours, !cilium) << name;
    }
  }
}

// Nor does it make a sidecar's rules those of an ambient pod.
TEST(Ownership, ASidecarsBesideAChainWithoutAmbientRules) {
  Live live;
  live.backend = BackendKind::iptables_nft;
  add(live.chains, Table::nat, "ISTIO_OUTPUT", {}, Jump{"ISTIO_REDIRECT"});
  add(live.chains, Table::nat, "ISTIO_PRERT", {tcp}, Verdict::accept);
  add(live.chains, Table::nat, "PREROUTING", {in("net1")}, Verdict::return_);
  mark_ours(live.chains);
  EXPECT_TRUE(live.chains.back().rules.front().ours);
}

// Where a sidecar's rules are as well, those are ours, and nothing that an agent's rules need.
TEST(Ownership, AnAgentsRulesBesideASidecars) {
  Live live = ambient_in(BackendKind::iptables_legacy, of_istio);
  const std::size_t of_agent = count(live, &LiveRule::ours);
  for (LiveChain& chain : live.chains) {
    if (chain.table != Table::nat || chain.name != "ISTIO_OUTPUT") continue;
    chain.rules.push_back({{chain.families, Table::nat, chain.name, {tcp}, Jump{"ISTIO_REDIRECT"}, {}, {}}, {}, false});
    chain.rules.back().rule.matches.emplace_back(PortMatch{End::destination, {{80, 80}}, false});
  }
  mark_ours(live.chains);
  EXPECT_TRUE(leave_to_agents(live, false));
  EXPECT_EQ(count(live, &LiveRule::ours), 2U);
  EXPECT_EQ(count(live, &LiveRule::of_agent), of_agent) << "the jumps to the chain among them";
}

// An ambient pod has no rules of interfaces in built-in chains.
TEST(Ownership, InterfacesOfAnAmbientPodAreOthers) {
  Live live = ambient_in(BackendKind::iptables_nft, of_istio);
  const std::size_t before = count(live, &LiveRule::ours);
  add(live.chains, Table::nat, "PREROUTING", {in("net1")}, Verdict::return_);
  mark_ours(live.chains);
  EXPECT_EQ(count(live, &LiveRule::ours), before);
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
  EXPECT_FALSE(leads_to_removed(live, asked));
  asked.rules.front().families = Family::ipv6;
  const auto refused = leads_to_removed(live, asked);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), ExitCode::failed);
  EXPECT_THAT(refused->what(), testing::HasSubstr("-A DOCKER -p tcp -j ISTIO_REDIRECT"));
}

TEST(Ownership, AChainThatAMapLeadsToCannotGo) {
  Live live;
  live.backend = BackendKind::iptables_nft;
  add(live.chains, Table::nat, "ISTIO_REDIRECT", {tcp}, Redirect{15001});
  live.chains.front().table_name = "ip nat";
  mark_ours(live.chains);
  live.tables.push_back({"ip nat", false, false, 0, true, {{"m", "mine"}, {"m", "ISTIO_REDIRECT"}}});
  const auto refused = leads_to_removed(live, {});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), ExitCode::failed);
  EXPECT_THAT(refused->what(), testing::HasSubstr("ISTIO_REDIRECT"));
  EXPECT_THAT(refused->what(), testing::HasSubstr("another program's map leads to it: m"));
  EXPECT_THAT(refused->hint(), testing::HasSubstr("nft list map ip nat m"));
  Ruleset asked;
  asked.rules.push_back({Family::ipv4, Table::nat, "OUTPUT", {}, Jump{"ISTIO_REDIRECT"}, {}, {}});
  EXPECT_FALSE(leads_to_removed(live, asked));
  live.tables.front().name = "ip6 nat";
  EXPECT_FALSE(leads_to_removed(live, {})) << "another table's";
}

TEST(Ownership, ATableOfAnotherProcessCannotBeChanged) {
  Live live;
  live.backend = BackendKind::iptables_nft;
  add(live.chains, Table::nat, "ISTIO_REDIRECT", {tcp}, Redirect{15001});
  live.chains.front().table_name = "ip nat";
  mark_ours(live.chains);
  live.tables.push_back({"ip nat"});
  EXPECT_FALSE(owned_by_another(live));
  live.tables.front().owner = 7;
  const auto refused = owned_by_another(live);
  ASSERT_TRUE(refused);
  EXPECT_THAT(refused->what(), testing::HasSubstr("the table ip nat cannot be removed: another process owns it"));
  live.chains.front().table_name = "ip6 nat";
  EXPECT_FALSE(owned_by_another(live)) << "it holds nothing of ours";
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

const ProtocolMatch udp{Protocol::udp, false};
OwnerMatch owner(OwnerKind kind, std::uint32_t id) { return {kind, {{id, id}}, false}; }

// By the ids whose traffic ISTIO_OUTPUT returns; where it returns none, nothing tells.
TEST(Ownership, RulesOfAnOwnerAreThoseOfTheProxy) {
  for (const bool tells : {true, false}) {
    std::vector<LiveChain> chains;
    add(chains, Table::nat, "OUTPUT", {tcp}, Jump{"ISTIO_OUTPUT"});
    if (tells) add(chains, Table::nat, "ISTIO_OUTPUT", {owner(OwnerKind::uid, 5)});
    if (!tells) add(chains, Table::nat, "ISTIO_OUTPUT");
    const PortMatch query{End::destination, {{53, 53}}, false};
    for (const auto& [kind, id] : {std::pair(OwnerKind::uid, 5U), {OwnerKind::uid, 6U}, {OwnerKind::gid, 5U}})
      add(chains, Table::nat, "OUTPUT", {udp, query, owner(kind, id)});
    add(chains, Table::nat, "OUTPUT", {udp, query}, Redirect{15053});
    std::vector<std::string> found = ours(chains);
    std::erase_if(found, [](const std::string& each) { return each.find("--dport 53 -m owner") == std::string::npos; });
    EXPECT_EQ(found.size(), tells ? 1U : 3U);
    EXPECT_EQ(found.front(), "-A OUTPUT -p udp --dport 53 -m owner --uid-owner 5 -j RETURN");
  }
}

// Ours is the last one, or the first of those that are inserted.
TEST(Ownership, OfIdenticalRulesOneIsOurs) {
  std::vector<LiveChain> chains;
  add(chains, Table::nat, "ISTIO_OUTPUT");
  for (const char* name : {"eth1", "eth2", "eth1", "eth2"}) add(chains, Table::nat, "PREROUTING", {in(name)});
  add(chains, Table::nat, "OUTPUT", {out("eth2")});
  mark_ours(chains);
  const LiveChain& prerouting =
      *std::ranges::find_if(chains, [](const LiveChain& each) { return each.name == "PREROUTING"; });
  EXPECT_TRUE(prerouting.rules[0].ours) << "inserted by -k";
  EXPECT_FALSE(prerouting.rules[1].ours);
  EXPECT_FALSE(prerouting.rules[2].ours);
  EXPECT_TRUE(prerouting.rules[3].ours) << "appended by -c, with its twin in OUTPUT";
}

// A pattern's twin is the same pattern.
TEST(Ownership, PatternsOfInterfacesArePairs) {
  std::vector<LiveChain> chains;
  add(chains, Table::nat, "ISTIO_OUTPUT");
  add(chains, Table::mangle, "PREROUTING", {in("net+")});
  add(chains, Table::mangle, "PREROUTING", {in("eth1")});
  add(chains, Table::mangle, "OUTPUT", {out("net+")});
  add(chains, Table::mangle, "OUTPUT", {out("eth+")});
  EXPECT_EQ(ours(chains),
            (Words{"-A ISTIO_OUTPUT -j RETURN", "-A PREROUTING -i net+ -j RETURN", "-A OUTPUT -o net+ -j RETURN"}));
}

TEST(Ownership, AnyWordMoreIsSomebodyElse) {
  std::vector<LiveChain> chains;
  add(chains, Table::nat, "ISTIO_OUTPUT");
  add(chains, Table::nat, "PREROUTING", {in("eth1"), tcp});
  add(chains, Table::nat, "PREROUTING", {InterfaceMatch{InterfaceDirection::in, "eth1", true}});
  add(chains, Table::nat, "PREROUTING", {in("eth1")}, Verdict::accept);
  add(chains, Table::nat, "PREROUTING", {in("eth1"), CommentMatch{"mine"}});
  add(chains, Table::nat, "OUTPUT", {tcp, MarkMatch{1337}}, Connmark::save);
  add(chains, Table::mangle, "PREROUTING", {MarkMatch{1337}}, Connmark::save);
  add(chains, Table::mangle, "PREROUTING", {tcp, MarkMatch{1337, 0xff}}, Connmark::save);
  add(chains, Table::mangle, "OUTPUT", {tcp, ConnmarkMatch{1337}}, Connmark::save);
  EXPECT_EQ(ours(chains), Words{"-A ISTIO_OUTPUT -j RETURN"});
}

// ---- Everything that the plan writes is recognised.

// Some of `items`, in their order; maybe none.
template <typename T>
std::vector<T> some_of(std::mt19937& dice, const std::vector<T>& items) {
  std::vector<T> some;
  const auto chance = dice() % 4;
  for (const T& item : items) {
    if (dice() % 4 < chance) some.push_back(item);
  }
  return some;
}

template <typename T>
Selection<T> all_or_some_of(std::mt19937& dice, const std::vector<T>& items) {
  if (dice() % 3 == 0) return {true, {}};
  return {false, some_of(dice, items)};
}

template <typename T>
std::vector<T> one_or_more_of(std::mt19937& dice, const std::vector<T>& items) {
  std::vector<T> some = some_of(dice, items);
  if (some.empty()) some.push_back(items[dice() % items.size()]);
  return some;
}

// Any combination of options, with values that are alike, that touch, and that match everything.
Config any_config(std::mt19937& dice) {
  const auto one_in = [&](unsigned count) { return dice() % count == 0; };
  std::vector<PortRange> ports{80, 443, 53, 15008, 15006, 65535, 443, 7000, {7000, 7100}, {50, 65535}};
  if (one_in(8)) {
    for (std::uint16_t port = 7001; port < 7040; ++port) ports.emplace_back(port);
  }
  std::vector<AddressRange> ranges;
  for (const char* text : {"0.0.0.0/0", "::/0", "10.96.0.0/16", "10.97.0.0/16", "10.96.0.10/32", "127.0.0.1/32",
                           "127.1.0.0/16", "::1/128", "fd00::/8", "fd00:96::10/128"}) {
    ranges.push_back(*AddressRange::parse(text));
  }
  const std::vector<std::string> interfaces{"eth1", "net+", "lo", "eth1"};
  const std::vector<std::uint32_t> ids{1337, 0, 1338, 4294967294};

  Config config = usual();
  if (one_in(2)) config.mode = Mode::tproxy;
  if (one_in(3)) config.proxy_port = 15053;
  if (one_in(3)) config.inbound_port = 15001;
  if (one_in(3)) config.tunnel_port = one_in(2) ? 53 : 80;
  if (one_in(2)) config.proxy_uids = one_or_more_of(dice, ids);
  if (one_in(2)) config.proxy_gids = one_or_more_of(dice, ids);
  config.inbound_ports = all_or_some_of(dice, ports);
  config.inbound_exclude_ports = some_of(dice, ports);
  config.inbound_ranges.list = some_of(dice, ranges);
  config.inbound_exclude_ranges = some_of(dice, ranges);
  config.exclude_interfaces = some_of(dice, interfaces);
  config.outbound_ranges = all_or_some_of(dice, ranges);
  config.outbound_exclude_ranges = some_of(dice, ranges);
  config.outbound_ports = some_of(dice, ports);
  config.outbound_exclude_ports = some_of(dice, ports);
  config.virtual_interfaces = some_of(dice, interfaces);
  if (one_in(3)) config.tproxy_mark = one_in(2) ? 1338 : 1;
  if (one_in(3)) config.loopback_ipv4 = *AddressRange::parse(one_in(2) ? "127.0.0.0/8" : "127.1.2.3/32");
  config.owner_groups = all_or_some_of(dice, ids);
  config.owner_groups_exclude = some_of(dice, ids);
  config.redirect_dns = one_in(2);
  config.capture_all_dns = one_in(3);
  config.drop_invalid = one_in(2);
  return config;
}

HostFacts any_host(std::mt19937& dice) {
  HostFacts facts;
  if (dice() % 2 == 0) facts.families = Families::both();
  std::vector<Address> servers;
  for (const char* text : {"10.96.0.53", "10.96.0.54", "fd00:96::53", "192.0.2.53"}) {
    servers.push_back(*Address::parse(text));
  }
  facts.dns_servers = some_of(dice, servers);
  return facts;
}

std::vector<std::string> not_of_istio(const Ruleset& ruleset) {
  std::vector<std::string> found;
  for (const Rule& rule : ruleset.rules) {
    if (!is_of_istio(rule)) found.push_back(fmt::format("-t {} {}", name(rule.table), iptables_words(rule)));
  }
  return found;
}

// As it is sent to iptables, to nf_tables, and as mark_ours finds it beside a rule of another program.
TEST(Ownership, WhateverWePlan) {
  std::mt19937 dice(15006);
  for (int round = 0; round < 500; ++round) {
    SCOPED_TRACE(fmt::format("config {}", round));
    const Config config = any_config(dice);
    const Ruleset planned = plan(config, any_host(dice)).ruleset;
    ASSERT_EQ(not_of_istio(planned), Words{});
    ASSERT_EQ(not_of_istio(in_iptables_order(planned)), Words{});
    ASSERT_EQ(not_of_istio(fold(planned)), Words{});

    std::vector<LiveChain> chains = as_live(planned, BackendKind::iptables_legacy).chains;
    for (LiveChain& chain : chains) {
      chain.ours = false;
      for (LiveRule& live : chain.rules) live.ours = false;
    }
    add(chains, Table::nat, "OUTPUT", {tcp}, Jump{"KUBE-SERVICES"});
    mark_ours(chains);
    for (const LiveChain& chain : chains) {
      for (const LiveRule& live : chain.rules) {
        ASSERT_EQ(live.ours, live.rule.target != Target(Jump{"KUBE-SERVICES"}))
            << name(chain.table) << " " << iptables_words(live.rule);
      }
    }
  }
}

// Values that a shape leaves open are values, not masks.
TEST(Ownership, AMarkWithAMaskIsSomebodyElse) {
  const auto known = [](const char* chain, std::vector<Match> matches, Target target) {
    return is_of_istio({Family::ipv4, Table::mangle, chain, std::move(matches), std::move(target), {}, {}});
  };
  EXPECT_TRUE(known("ISTIO_INBOUND", {tcp, MarkMatch{77}}, Verdict::return_));
  EXPECT_FALSE(known("ISTIO_INBOUND", {tcp, MarkMatch{77, 0xff}}, Verdict::return_));
  EXPECT_FALSE(known("OUTPUT", {tcp, ConnmarkMatch{77, 0xff}}, Connmark::restore));
  EXPECT_TRUE(known("ISTIO_DIVERT", {}, SetMark{77}));
  EXPECT_FALSE(known("ISTIO_DIVERT", {}, SetMark{77, 0xff}));
  const AddressMatch elsewhere{End::destination, {*AddressRange::parse("127.0.0.1/32")}, true};
  EXPECT_TRUE(known("ISTIO_TPROXY", {elsewhere, tcp}, Tproxy{15006, 77}));
  EXPECT_FALSE(known("ISTIO_TPROXY", {elsewhere, tcp}, Tproxy{15006, 77, 0xff}));
}

TEST(Ownership, OfIstioOrCiliumIsNothingAfterRouting) {
  for (const char* chain : {"POSTROUTING", "ISTIO_POSTRT"})
    EXPECT_FALSE(is_of_istio({Family::ipv4, Table::nat, chain, {}, Verdict::return_, {}, {}})) << chain;
}

}  // namespace
}  // namespace sidetrack
