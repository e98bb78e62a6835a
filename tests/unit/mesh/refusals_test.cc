// SPDX-License-Identifier: GPL-2.0-or-later
// Why tables and chains cannot be removed or written, word by word, and whose rules are taken for whose.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mesh/catalogue.h"
#include "mesh/describe.h"
#include "mesh/ownership.h"
#include "mesh/rule_words.h"
#include "model/error.h"
#include "rule/ours.h"
#include "unit/live_rules.h"

namespace sidetrack {
namespace {

using namespace words;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string said(const std::optional<Error>& error) {
  if (!error) return "nothing";
  EXPECT_EQ(error->code(), ExitCode::failed);
  return fmt::format("{}; {}", error->what(), error->hint());
}

// One table of our own, with a chain and a rule of ours.
Live own_table() {
  Live live;
  live.backend = BackendKind::nftables;
  live.own_tables = {"inet sidetrack"};
  live.chains = {chain(Families::both(), Table::nat, "ISTIO_OUTPUT", true, {{{tcp}, Verdict::return_}})};
  live.chains.front().table_name = "inet sidetrack";
  live.tables = {{.name = "inet sidetrack"}};
  return live;
}

TEST(Refusals, ATableOfOurOwnHoldsNothingOfOthers) {
  EXPECT_EQ(said(others_in_own_tables(own_table())), "nothing");
  Live live = own_table();
  live.chains.push_back(chain(Families::both(), Table::other, "mine\n", false, {}));
  live.chains.back().table_name = "inet sidetrack";
  EXPECT_EQ(said(others_in_own_tables(live)),
            "nftables: the table inet sidetrack holds the chain mine\\x0a that Sidetrack did not make; nothing was "
            "changed; move it to a table of its own, then remove it here: nft delete chain inet sidetrack mine\\x0a");
  live.chains.back().table_name = "inet mine";
  EXPECT_EQ(said(others_in_own_tables(live)), "nothing");

  live = own_table();
  live.chains.front().rules.push_back(live.chains.front().rules.front());
  live.chains.front().rules.back().ours = false;
  EXPECT_EQ(said(others_in_own_tables(live)),
            "nftables: the table inet sidetrack holds the rule -A ISTIO_OUTPUT -p tcp -j RETURN that Sidetrack did not "
            "make; nothing was changed; move it to a table of its own, then remove it here: see nft -a list table inet "
            "sidetrack");
  live.own_tables.clear();
  EXPECT_EQ(said(others_in_own_tables(live)), "nothing");

  live = own_table();
  live.tables.insert(live.tables.begin(), {.name = "inet mine", .other_objects = true});
  EXPECT_EQ(said(others_in_own_tables(live)), "nothing");
  live.tables.back().other_objects = true;
  EXPECT_EQ(said(others_in_own_tables(live)),
            "nftables: the table inet sidetrack holds a set or another object that Sidetrack did not make; nothing was "
            "changed; move it to a table of its own, then remove it here: see nft list table inet sidetrack");
}

TEST(Refusals, AnOwnedTableKeepsItsRules) {
  Live live = own_table();
  live.tables.push_back({.name = "inet other", .owner = 7});
  EXPECT_EQ(said(owned_by_another(live)), "nothing");
  live.tables.push_back({.name = "inet sidetrack", .owner = 7});
  EXPECT_EQ(said(owned_by_another(live)),
            "nftables: the rules in the table inet sidetrack cannot be removed: another process owns it (flags owner); "
            "it goes when that process ends; nothing was changed");
  live.chains.front().ours = false;
  EXPECT_NE(said(owned_by_another(live)), "nothing") << "a rule of ours is enough";
  live.chains.front().rules.front().ours = false;
  EXPECT_EQ(said(owned_by_another(live)), "nothing");
}

TEST(Refusals, AChainStaysThatOthersLeadTo) {
  const std::string by_rule =
      "iptables-nft: the chain ISTIO_REDIRECT of the table ip nat (ipv4) cannot be removed: another program's rule "
      "leads to it: -A MINE -j ISTIO_REDIRECT; delete that rule first; nothing was changed";
  Live made;
  made.backend = BackendKind::iptables_nft;
  made.chains = {chain(Family::ipv4, Table::nat, "MINE", false, {{{}, Jump{"ISTIO_REDIRECT"}}}),
                 chain(Family::ipv4, Table::nat, "ISTIO_REDIRECT", true, {{{tcp}, Redirect{15001}}})};
  for (LiveChain& each : made.chains) each.table_name = "ip nat";
  made.chains[0].rules[0].ours = false;
  EXPECT_EQ(said(leads_to_removed(made, {})), by_rule);
  const auto with = [&](const std::function<void(Live&)>& change) {
    Live live = made;
    change(live);
    return said(leads_to_removed(live, {}));
  };
  EXPECT_EQ(with([](Live& live) { live.chains[0].rules[0].ours = true; }), "nothing");
  EXPECT_EQ(with([](Live& live) { live.chains[0].rules[0].rule.target = Verdict::drop; }), "nothing");
  EXPECT_EQ(with([](Live& live) { live.chains[0].rules[0].rule.target = Jump{"MISSING"}; }), "nothing");
  EXPECT_EQ(with([](Live& live) { live.chains[0].table_name = "ip filter"; }), "nothing");
  EXPECT_EQ(with([](Live& live) { live.chains[0].families = Family::ipv6; }), "nothing");
  EXPECT_EQ(with([](Live& live) { live.chains[1].rules[0].ours = false; }), "nothing") << "it stays anyway";
  EXPECT_EQ(with([](Live& live) { live.chains[1].ours = false; }), "nothing");
  // What is asked for stays: the chain itself, or a jump to it; of its table and its family.
  const auto wanting = [&](Table table, Family family, const char* name, const Target& target) {
    Ruleset wanted;
    wanted.rules.push_back({family, table, name, {}, target, {}, {}});
    return said(leads_to_removed(made, wanted));
  };
  EXPECT_EQ(wanting(Table::nat, Family::ipv4, "ISTIO_REDIRECT", Verdict::drop), "nothing");
  EXPECT_EQ(wanting(Table::nat, Family::ipv4, "OUTPUT", Jump{"ISTIO_REDIRECT"}), "nothing");
  EXPECT_EQ(wanting(Table::nat, Family::ipv4, "OUTPUT", Jump{"ISTIO_OUTPUT"}), by_rule);
  EXPECT_EQ(wanting(Table::nat, Family::ipv4, "OUTPUT", Verdict::drop), by_rule);
  EXPECT_EQ(wanting(Table::mangle, Family::ipv4, "ISTIO_REDIRECT", Verdict::drop), by_rule);
  EXPECT_EQ(wanting(Table::nat, Family::ipv6, "ISTIO_REDIRECT", Verdict::drop), by_rule);
  // The elements of maps lead there, too.
  made.chains.erase(made.chains.begin());
  made.tables = {{.name = "ip other", .jumps = {{"m", "ISTIO_REDIRECT"}}},
                 {.name = "ip nat", .jumps = {{"m", "MISSING"}, {"mine\n", "ISTIO_REDIRECT"}}}};
  EXPECT_EQ(
      said(leads_to_removed(made, {})),
      "iptables-nft: the chain ISTIO_REDIRECT of the table ip nat (ipv4) cannot be removed: another program's "
      "map leads to it: mine\\x0a; delete that element first: nft list map ip nat mine\\x0a; nothing was changed");
  made.tables.pop_back();
  EXPECT_EQ(said(leads_to_removed(made, {})), "nothing");
}

// Of chains of Cilium's names that hold none of an ambient pod's rules, neither they nor the jumps to them are ours: in
// their own table and family.
TEST(Ownership, OfCiliumsChainsGoesByWhatTheyHold) {
  const auto cilium = [](Family family, Table table, bool with_rules) {
    LiveChain made = chain(family, table, "CILIUM_OUTPUT", false, {});
    if (with_rules)
      made.rules.push_back(
          {{family, table, "CILIUM_OUTPUT", {ConnmarkMatch{0x111, 0xfff, false}}, Connmark::restore, {}, {}},
           {},
           false});
    return made;
  };
  const auto jump = [](Family family, Table table) {
    return chain(family, table, "OUTPUT", false, {{{}, Jump{"CILIUM_OUTPUT"}}});
  };
  std::vector<LiveChain> chains = {jump(Family::ipv4, Table::mangle), cilium(Family::ipv4, Table::mangle, true),
                                   jump(Family::ipv6, Table::mangle), cilium(Family::ipv6, Table::mangle, false),
                                   jump(Family::ipv4, Table::nat),    cilium(Family::ipv4, Table::nat, false)};
  mark_ours(chains);
  std::vector<bool> ours;
  for (const LiveChain& each : chains) ours.push_back(each.name == "OUTPUT" ? each.rules.front().ours : each.ours);
  EXPECT_THAT(ours, ElementsAre(true, true, false, false, false, false));
}

// An agent's tables of nftables are its own as a whole.
TEST(Ownership, OfTheTablesOfAnAmbientAgent) {
  Live live = own_table();
  live.chains.push_back(live.chains.front());
  live.chains.back().table_name = "inet istio-ambient-nat";
  live.own_tables.emplace_back("inet istio-ambient-nat");
  EXPECT_TRUE(leave_to_agents(live, true));
  EXPECT_THAT(live.own_tables, ElementsAre("inet sidetrack"));
  EXPECT_TRUE(live.chains.front().ours);
  EXPECT_FALSE(live.chains.front().of_agent);
  EXPECT_FALSE(live.chains.back().ours);
  EXPECT_TRUE(live.chains.back().of_agent);
  EXPECT_TRUE(live.chains.back().rules.front().of_agent);
  EXPECT_FALSE(live.chains.back().rules.front().ours);
  EXPECT_FALSE(leave_to_agents(live, true)) << "again";
  Live none = own_table();
  EXPECT_FALSE(leave_to_agents(none, false));
  for (const auto& [table, is] :
       {std::pair{"inet istio-ambient-nat", true}, {"inet istio-ambient", false}, {"ip istio-ambient-nat", false}})
    EXPECT_EQ(is_ambient_table(table), is) << table;
}

TEST(Ownership, KnowsWhetherOthersHaveASay) {
  Live live;
  live.chains = {chain(Family::ipv4, Table::nat, "OUTPUT", false, {})};
  EXPECT_FALSE(holds_others(live));
  const auto with = [&](const std::function<void(LiveChain&)>& change) {
    Live changed = live;
    change(changed.chains.front());
    return holds_others(changed);
  };
  EXPECT_TRUE(with([](LiveChain& one) { one.dormant = true; }));
  EXPECT_TRUE(with([](LiveChain& one) { one.policy = Verdict::drop; }));
  EXPECT_FALSE(with([](LiveChain& one) {
    one.policy = Verdict::drop;
    one.hook.reset();
  }));
  live.chains = {
      chain(Family::ipv4, Table::nat, "ISTIO_OUTPUT", true, {{{tcp}, Verdict::return_}, {{}, Verdict::return_}})};
  EXPECT_FALSE(holds_others(live));
  EXPECT_TRUE(with([](LiveChain& one) { one.rules.back().ours = false; }));
  EXPECT_TRUE(concerns_us(live.chains.front()));
  live.chains.front().rules.back().ours = false;
  EXPECT_FALSE(is_wholly_ours(live.chains.front()));
  EXPECT_TRUE(concerns_us(live.chains.front()));
  live.chains.front().rules.front().ours = false;
  EXPECT_FALSE(concerns_us(live.chains.front()));
}

// ---- Words

TEST(Whose, AreTheChainsOfTheNode) {
  const auto of = [](BackendKind backend, const char* table_name, const char* name) {
    Live live;
    live.backend = backend;
    LiveChain made = chain(Family::ipv4, Table::nat, name, false, {{{}, Jump{"ISTIO_POSTRT"}}, {{}, Verdict::drop}});
    made.table_name = table_name;
    for (LiveRule& rule : made.rules) rule.ours = false;
    return std::vector<std::string_view>{sidetrack::name(maker_of(live, made)),
                                         sidetrack::name(maker_of(live, made, made.rules[0])),
                                         sidetrack::name(maker_of(live, made, made.rules[1]))};
  };
  EXPECT_THAT(of(BackendKind::nftables, "inet mine", "ISTIO_POSTRT"), ElementsAre("other", "other", "other"));
  EXPECT_THAT(of(BackendKind::iptables_nft, "ip nat", "ISTIO_POSTRT"), ElementsAre("Istio", "other", "other"));
  EXPECT_THAT(of(BackendKind::iptables_nft, "ip nat", "POSTROUTING"), ElementsAre("other", "Istio", "other"));
}

TEST(Describe, SaysInShortLongWords) {
  EXPECT_EQ(in_short(std::string(101, 'a')), std::string(100, 'a') + "...(+1)");
  EXPECT_EQ(in_short(std::string(150, 'a') + "`"), std::string(100, 'a') + "...(+51)`");
  EXPECT_EQ(in_iptables_names("istio-prerouting"), "ISTIO_PRERT");
  EXPECT_EQ(in_iptables_names("istio-output-dns"), "ISTIO_OUTPUT_DNS");
  const auto of = [](std::vector<Match> matches, Target target) {
    return short_words({Family::ipv4, Table::nat, "OUTPUT", std::move(matches), std::move(target), {}, {}});
  };
  EXPECT_EQ(of({}, NonTerminating{}), "");
  EXPECT_EQ(of({tcp}, NonTerminating{}), "-p tcp");
  EXPECT_EQ(of({}, Verdict::drop), "-j DROP");
  EXPECT_EQ(of({tcp, dport(80)}, Verdict::drop), "-p tcp --dport 80 -j DROP");
  EXPECT_EQ(of({OwnerMatch{OwnerKind::uid, {1, 3, 5, 7, 9, 11}, false}}, Verdict::drop),
            "-m owner --uid-owner 1,3,5,7,9,...(+1) -j DROP");
  EXPECT_EQ(of({PortMatch{End::destination, {1, 3, 5, 7, 9}, false}}, Verdict::drop),
            "-m multiport --dports 1,3,5,7,9 -j DROP");
}

}  // namespace
}  // namespace sidetrack
