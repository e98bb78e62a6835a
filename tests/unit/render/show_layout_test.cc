// SPDX-License-Identifier: GPL-2.0-or-later
// How `show` lays out chains of every kind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mesh/rule_words.h"
#include "render/show.h"
#include "unit/live_rules.h"
#include "unit/usual_config.h"

namespace sidetrack {
namespace {

using namespace words;
using ::testing::HasSubstr;
using ::testing::Not;

using Rules = std::vector<std::pair<std::vector<Match>, Target>>;

LiveChain of_table(const char* table, const char* name, std::optional<HookPoint> hook, const Rules& rules,
                   Families families = Families::both()) {
  LiveChain made = chain(families, Table::other, name, false, rules);
  made.table_name = table;
  made.hook = std::move(hook);
  return made;
}

HookPoint at(Hook hook, std::int32_t priority, const char* device = "") {
  return {.hook = hook, .priority = priority, .type = ChainType::filter, .device = device};
}

// In the order in which a packet comes by, whatever the order in which they were read. A base chain that does nothing
// is left out; one that drops is not.
TEST(ShowLayout, IsInTheOrderOfTheHooks) {
  Live live;
  live.backend = BackendKind::nftables;
  LiveChain drops = of_table("inet last", "forward", at(Hook::forward, -7), {});
  drops.policy = Verdict::drop;
  LiveChain dormant = of_table("inet asleep", "out", at(Hook::output, 0), {{{udp}, Verdict::drop}});
  dormant.dormant = true;
  live.chains = {of_table("netdev d", "leaving", at(Hook::egress, 3, "eth0"), {{{}, Verdict::accept}}),
                 of_table("inet b", "post", at(Hook::postrouting, 0), {{{tcp}, Jump{"common"}}}),
                 dormant,
                 drops,
                 of_table("inet b", "late", at(Hook::input, 10), {{{tcp}, Jump{"common"}}, {{tcp}, Jump{"missing"}}}),
                 of_table("inet b", "early", at(Hook::input, -10), {{{udp}, Jump{"common"}}}),
                 of_table("inet b", "empty", at(Hook::input, 0), {}),
                 of_table("inet b", "common", std::nullopt, {{{dport(15021)}, Verdict::accept}}),
                 of_table("inet b", "lonely", std::nullopt, {}),
                 of_table("inet b", "alone", std::nullopt, {{{dport(80)}, Verdict::accept}}),
                 of_table("netdev d", "coming", at(Hook::ingress, -3, "eth0"), {{{}, Verdict::accept}}),
                 of_table("inet b", "pre", at(Hook::prerouting, 0), {{{}, Verdict::accept}})};
  const std::vector<Live> all{live};
  const std::string text = show(all, {}, {});
  EXPECT_EQ("\n" + text.substr(0, text.find("\n\n") + 1), R"(
packets  bytes  nftables, ipv4 and ipv6
                INGRESS
                  netdev d coming, device eth0, at priority -3
      0      0         1  -j ACCEPT                    [other]
                PREROUTING
                  inet b pre, at priority 0
      0      0         1  -j ACCEPT                    [other]
                INPUT
                  inet b early, at priority -10
      0      0         1  -p udp -j common             [other]
                      inet b common [other]
      0      0             1  --dport 15021 -j ACCEPT  [15021 readiness]
                  inet b late, at priority 10
      0      0         1  -p tcp -j common             [other]
      1     60         2  -p tcp -j missing            [other]
                FORWARD
                  inet last forward, at priority -7, policy drop
                OUTPUT
                  inet asleep out, at priority 0, never called: its table is dormant
      0      0         1  -p udp -j DROP               [other]
                POSTROUTING
                  inet b post, at priority 0
      0      0         1  -p tcp -j common             [other]
                EGRESS
                  netdev d leaving, device eth0, at priority 3
      0      0         1  -j ACCEPT                    [other]
                not reached from any hook
                  inet b lonely [other]
                  inet b alone [other]
      0      0         1  --dport 80 -j ACCEPT
)");
}

TEST(ShowLayout, HasAPartForEachFamily) {
  Live live;
  live.backend = BackendKind::nftables;
  const HookPoint input = at(Hook::input, 0);
  live.chains = {of_table("bridge t", "c", input, {{{}, Verdict::accept}}, Families()),
                 of_table("inet t", "c", input, {{{}, Verdict::accept}}, Families::both()),
                 of_table("ip6 t", "c", input, {{{}, Verdict::accept}}, Family::ipv6),
                 of_table("ip t", "c", input, {{{}, Verdict::accept}}, Family::ipv4)};
  const std::vector<Live> all{live};
  std::vector<std::string> titles;
  const std::string text = show(all, {}, {});
  for (std::size_t place = 0; (place = text.find("nftables, ", place)) != std::string::npos; ++place)
    titles.push_back(text.substr(place, text.find('\n', place) - place));
  EXPECT_THAT(titles, ::testing::ElementsAre("nftables, ipv4", "nftables, ipv6", "nftables, ipv4 and ipv6",
                                             "nftables, frames"));
}

// Rules of one kind: nine are one line, eight are not.
TEST(ShowLayout, ARunIsOfRulesThatDifferInTheirValuesAlone) {
  const auto shown = [](const std::vector<LiveRule>& rules, const ShowOptions& options = {}) {
    Live live;
    live.chains = {chain(Family::ipv4, Table::nat, "OUTPUT", false, {})};
    live.chains.front().rules = rules;
    const std::vector<Live> all{live};
    return show(all, {}, options);
  };
  const auto rules = [](unsigned count, const Target& target = Verdict::accept) {
    std::vector<LiveRule> made;
    for (unsigned i = 1; i <= count; ++i) {
      made.push_back({{Family::ipv4, Table::nat, "OUTPUT", {tcp, dport(static_cast<std::uint16_t>(i))}, target, {}, {}},
                      {i, 10 * i},
                      false});
    }
    return made;
  };
  EXPECT_THAT(shown(rules(9)), HasSubstr("     45    450       1-9  9 rules, the first: -p tcp --dport 1 -j ACCEPT"));
  EXPECT_THAT(shown(rules(9), {.color = false, .all = true}),
              HasSubstr("      9     90         9  -p tcp --dport 9 -j"));
  EXPECT_THAT(shown(rules(8)), HasSubstr("      8     80         8  -p tcp --dport 8 -j ACCEPT"));
  EXPECT_THAT(shown(rules(1100)), HasSubstr("605,550  6,055,500      1-1100  1,100 rules, the first: "));
  // What differs in more ends the run.
  const auto with = [&](const std::function<void(LiveRule&)>& change) {
    std::vector<LiveRule> made = rules(12);
    change(made[9]);
    return shown(made);
  };
  const auto ends = AllOf(HasSubstr("1-9  9 rules"), HasSubstr("  10  "), HasSubstr("  11  "), HasSubstr("  12  "));
  EXPECT_THAT(with([](LiveRule&) {}), HasSubstr("1-12  12 rules"));
  EXPECT_THAT(with([](LiveRule& one) { one.ours = true; }), ends);
  EXPECT_THAT(with([](LiveRule& one) { one.rule.target = Verdict::drop; }), ends);
  EXPECT_THAT(with([](LiveRule& one) { one.rule.families = Families::both(); }), ends);
  EXPECT_THAT(with([](LiveRule& one) { one.rule.matches.pop_back(); }), ends);
  EXPECT_THAT(with([](LiveRule& one) { one.rule.matches[1] = mark(5); }), ends);
  // The users of one rule are not the groups of another.
  std::vector<LiveRule> owners = rules(12);
  for (std::size_t i = 0; i < owners.size(); ++i)
    owners[i].rule.matches = {tcp, owner(i < 9 ? OwnerKind::uid : OwnerKind::gid, static_cast<std::uint32_t>(i))};
  EXPECT_THAT(shown(owners), ends);
  // A chain that one of them leads to stands below its line.
  Live live;
  live.chains = {chain(Family::ipv4, Table::nat, "OUTPUT", false, {}),
                 chain(Family::ipv4, Table::nat, "C", false, {{{udp}, Verdict::drop}})};
  live.chains.front().rules = rules(9, Jump{"C"});
  const std::vector<Live> all{live};
  EXPECT_THAT(show(all, {}, {}), HasSubstr("1-9  9 rules, the first: -p tcp --dport 1 -j C  [other]\n"
                                           "                      nat C [other]\n"
                                           "      0      0             1  -p udp -j DROP"));
}

TEST(ShowLayout, MarksWhatHasMovedSinceItWasShown) {
  Live before;
  before.chains = {chain(Family::ipv4, Table::nat, "OUTPUT", false,
                         {{{tcp}, Verdict::accept}, {{udp}, Verdict::accept}, {{dport(1)}, Verdict::accept}})};
  std::vector<Live> now{before};
  std::vector<LiveRule>& rules = now.front().chains.front().rules;
  rules[0].counters.packets = 1;       // of 0
  rules[1].counters.packets = 0;       // of 1: it was made anew
  rules[2].counters.packets = 5;       // of 2, but
  rules[2].rule.matches = {dport(2)};  // it is another rule
  rules.push_back(rules[0]);           // was not there
  rules[3].rule.matches = {tcp, dport(9)};
  rules[3].counters.packets = 7;
  const std::vector<Live> shown_before{before};
  const std::string text = show(now, {}, {.color = false, .all = false, .before = shown_before});
  EXPECT_THAT(text, HasSubstr("-p tcp -j ACCEPT            +1  [other]\n"));
  for (const char* line : {"-p udp -j ACCEPT            [other]", "--dport 2 -j ACCEPT         [other]",
                           "-p tcp --dport 9 -j ACCEPT  [other]"})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(show(now, {}, {}), Not(HasSubstr("+")));
  // What another backend held is not compared with.
  std::vector<Live> other = shown_before;
  other.front().backend = BackendKind::nftables;
  EXPECT_THAT(show(now, {}, {.color = false, .all = false, .before = other}), Not(HasSubstr("+")));
}

// Of a rule that is longer than 72 characters the rest is not aligned.
TEST(ShowLayout, AlignsWhatIsNotTooLong) {
  const auto shown = [](std::size_t length) {
    Live live;
    live.chains = {chain(Family::ipv4, Table::nat, "OUTPUT", false,
                         {{{UnknownMatch{std::string(length, 'x')}}, NonTerminating{}}, {{tcp}, Verdict::accept}})};
    const std::vector<Live> all{live};
    return show(all, {}, {});
  };
  EXPECT_THAT(shown(68), HasSubstr("2  -p tcp -j ACCEPT" + std::string(68 - 16, ' ') + "  [other]\n"));
  EXPECT_THAT(shown(69), HasSubstr("2  -p tcp -j ACCEPT  [other]\n"));
  EXPECT_THAT(shown(69), HasSubstr("1  " + std::string(69, 'x') + "  [other]\n"));
}

TEST(ShowLayout, WidensTheColumnsOfItsNumbers) {
  Live live;
  live.chains = {chain(Family::ipv4, Table::nat, "OUTPUT", false, {{{tcp}, Verdict::accept}})};
  live.chains.front().rules.front().counters = {1234567890, 999999999999};
  const std::vector<Live> all{live};
  EXPECT_THAT(show(all, {}, {}), ::testing::StartsWith(R"(      packets            bytes  iptables-legacy, ipv4
                                OUTPUT
                                  nat OUTPUT
1,234,567,890  999,999,999,999         1  -p tcp -j ACCEPT  [other]
)"));
}

TEST(ShowLayout, SaysWhatIsBesideTheRules) {
  Routing routing;
  routing.policy_rules = {fwmark_rule(Family::ipv4, 1337, 133), fwmark_rule(Family::ipv6, 0x111, 100, 0xfff),
                          placed(fwmark_rule(Family::ipv4, 1337, 134), 100, false)};
  routing.local_routes = {local_default(Family::ipv6, 100)};
  routing.loopback_addresses = {*Address::parse("127.0.0.6")};
  const std::vector<Obstacle> obstacles = {{"a rule", "a packet", "lands", "is dropped"}, {"many rules", "", "", ""}};
  const std::vector<Live> none;
  EXPECT_EQ(show(none, routing, {.color = false, .all = false, .before = {}, .obstacles = obstacles}),
            R"(no rules

policy rules, routes, addresses
  ipv4  rule fwmark 1337 lookup 133: what TPROXY has marked stays in the pod
  ipv6  rule fwmark 0x111/0xfff lookup 100: answers to what ztunnel sent with a client's address come back to it
  ipv4  rule fwmark 1337 lookup 134: at 100, after other programs' rules
  ipv6  route local default dev lo table 100
  ipv4  address 127.0.0.6/32 dev lo: the proxy's source towards the app

inbound       nothing is captured
outbound      nothing is captured
not captured  everything
but           a rule: `a packet` is dropped; as requested it lands
but           many rules: too many to follow every packet that is captured: unknown whether they keep traffic from the proxy
)");
  EXPECT_THAT(show(none, routing, {.color = true, .all = false, .before = {}, .obstacles = obstacles}),
              HasSubstr("\033[33mbut           \033[0ma rule"));
}

TEST(ShowLayout, IsColoured) {
  Live live;
  live.chains = {chain(Family::ipv4, Table::nat, "OUTPUT", false, {{{tcp}, Jump{"ISTIO_OUTPUT"}}}),
                 chain(Family::ipv4, Table::nat, "ISTIO_OUTPUT", true, {{{dport(15021)}, Verdict::drop}})};
  const std::vector<Live> before{live};
  std::vector<Live> now{live};
  now.front().chains.front().rules.front().counters.packets = 2;
  const std::string text = show(now, {}, {.color = true, .all = false, .before = before});
  EXPECT_THAT(text, ::testing::StartsWith("\033[1mpackets  bytes  iptables-legacy, ipv4\033[0m\n"
                                          "                \033[1mOUTPUT\033[0m\n"
                                          "                  nat OUTPUT\n"));
  EXPECT_THAT(text, HasSubstr("\033[33m  +2\033[0m  [Istio or Sidetrack]  \033[2moutbound TCP is checked\033[0m\n"));
  EXPECT_THAT(text, HasSubstr("  \033[2m[15021 readiness]\033[0m\n"));
}

TEST(ShowJson, HasAllOfAChain) {
  Live live;
  live.backend = BackendKind::nftables;
  LiveChain frames = of_table("netdev d", "coming", at(Hook::ingress, -3, "eth0"), {{{tcp}, Verdict::accept}});
  frames.policy = Verdict::drop;
  frames.dormant = true;
  frames.rules.front().counters = {5, 60};
  live.chains = {frames, of_table("inet b", "alone", std::nullopt, {}),
                 chain(Family::ipv4, Table::nat, "OUTPUT", false, {})};
  const std::vector<Live> all{live};
  const std::vector<Obstacle> obstacles = {{"a rule", "a packet", "lands", "is dropped"}, {"many rules", "", "", ""}};
  const nlohmann::json said = nlohmann::json::parse(show_json(all, {}, {.obstacles = obstacles}));
  EXPECT_EQ(said, nlohmann::json::parse(R"({
    "chains": [
      {"backend": "nftables", "families": ["ipv4", "ipv6"], "table": "netdev d", "chain": "coming", "whose": "other",
       "hook": "INGRESS", "priority": -3, "type": "filter", "device": "eth0", "policy": "drop", "dormant": true,
       "rules": [{"number": 1, "families": ["ipv4", "ipv6"], "rule": "-A coming -p tcp -j ACCEPT", "packets": 5,
                  "bytes": 60, "whose": "other", "flag": "", "reason": ""}]},
      {"backend": "nftables", "families": ["ipv4", "ipv6"], "table": "inet b", "chain": "alone", "whose": "other",
       "rules": []},
      {"backend": "nftables", "families": ["ipv4"], "table": "nat", "chain": "OUTPUT", "whose": "other",
       "hook": "OUTPUT", "priority": -100, "type": "nat", "policy": "accept", "dormant": false, "rules": []}],
    "routing": {"rules": [], "routes": [], "addresses": []},
    "summary": {"inbound": "nothing is captured", "outbound": "nothing is captured", "left_out": "everything"},
    "obstacles": [{"rule": "a rule", "packet": "a packet", "planned": "lands", "instead": "is dropped"},
                  {"rule": "many rules", "packet": null, "planned": null, "instead": null}]})"))
      << said.dump(1);
}

}  // namespace
}  // namespace sidetrack
