// SPDX-License-Identifier: GPL-2.0-or-later
// Rules that are read from the documents which Sidetrack writes.
#include "text/read_rules.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <nlohmann/json.hpp>
#include <string>

#include "mesh/rule_words.h"
#include "model/error.h"
#include "render/render.h"
#include "render/show.h"
#include "rule/iptables.h"
#include "text/read_texts.h"
#include "unit/asking.h"
#include "unit/live_rules.h"
#include "unit/standard_input.h"
#include "unit/temporary_file.h"

namespace sidetrack {
namespace {

using namespace words;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

space::Side side_of(const std::string& text) { return read_sides({"a.json", text}, {"b.json", text}).first; }

// All that `show --json` says of the rules, as text.
std::string said_of(std::span<const Live> live) {
  std::string text;
  for (const Live& one : live) {
    text += fmt::format("{}\n", name(one.backend));
    for (const LiveChain& chain : one.chains) {
      text += fmt::format("  {} {} {} {}", names(chain.families), name(chain.table), chain.table_name, chain.name);
      if (chain.hook) {
        text += fmt::format(": {} {} {} {} {}{}", name(chain.hook->hook), chain.hook->priority, name(chain.hook->type),
                            chain.hook->device, chain.policy == Verdict::drop ? "drop" : "accept",
                            chain.dormant ? " dormant" : "");
      }
      text += "\n";
      for (const LiveRule& rule : chain.rules) {
        text += fmt::format("    {} {} {}{}\n", names(rule.rule.families), name(rule.rule.table),
                            iptables_words(rule.rule), rule.ours ? " ours" : "");
      }
    }
  }
  return text;
}

// Chains of every kind: of hooks and of none, of devices, dormant, of others and of ours, of several backends.
std::vector<Live> various() {
  Live legacy;
  legacy.backend = BackendKind::iptables_legacy;
  legacy.chains = {
      chain(Family::ipv4, Table::nat, "OUTPUT", false, {{{tcp}, Jump{"ISTIO_OUTPUT"}}, {{udp}, Jump{"MINE"}}}),
      chain(Family::ipv4, Table::nat, "MINE", false, {{{dport(53)}, Verdict::return_}}),
      chain(Family::ipv4, Table::nat, "ISTIO_OUTPUT", true, {{{}, Redirect{15001}}}),
      chain(Family::ipv6, Table::raw, "PREROUTING", false, {{{}, Notrack{}}}),
      chain(Family::ipv6, Table::security, "INPUT", false, {{{tcp}, Verdict::drop}})};
  Live nft;
  nft.backend = BackendKind::nftables;
  LiveChain input = chain(Families::both(), Table::other, "in", false, {{{tcp}, Verdict::accept}});
  input.table_name = "inet mine";
  input.hook = HookPoint{.hook = Hook::input, .priority = -7, .type = ChainType::filter, .device = ""};
  input.policy = Verdict::drop;
  LiveChain frames = input;
  frames.name = "frames";
  frames.table_name = "netdev his";
  frames.hook = HookPoint{.hook = Hook::ingress, .priority = 5, .type = ChainType::filter, .device = "eth7"};
  frames.policy = Verdict::accept;
  frames.dormant = true;
  nft.chains = {input, frames};
  return {legacy, nft};
}

TEST(ReadRules, OfWhatShowWritesAreTheSameChains) {
  const std::vector<Live> live = various();
  EXPECT_EQ(said_of(side_of(show_json(live, {}, {})).live), said_of(live));
}

TEST(ReadRules, OfWhatRenderWritesAreThoseOfTheBackendThatIsUsual) {
  for (const char* options : {"-i * -b * -d 15090", "-m TPROXY -i * -b 80 -o 22 --drop-invalid",
                              "-i 10.0.0.0/8,fd00::/8 -x 10.1.0.0/16 -c net2 -k net1"}) {
    CommandLine line;
    const HostFacts facts = asked(options, line);
    const Plan wanted = plan(line.config, facts);
    const Live live = as_live(wanted.ruleset, BackendKind::iptables_nft);
    Live read = side_of(json(wanted, line.config)).live.front();
    for (LiveChain& chain : read.chains) {
      for (LiveRule& rule : chain.rules) EXPECT_FALSE(rule.rule.insert_at) << iptables_words(rule.rule);
    }
    EXPECT_EQ(said_of({&read, 1}), said_of({&live, 1}));
  }
}

TEST(ReadRules, KnowThePolicyRulesRoutesAndAddresses) {
  Routing routing;
  routing.policy_rules = {fwmark_rule(Family::ipv4, 1337, 133), fwmark_rule(Family::ipv6, 0x111, 100, 0xfff)};
  routing.local_routes = {local_default(Family::ipv4, 133), local_default(Family::ipv6, 100)};
  routing.loopback_addresses = {*Address::parse("::6"), *Address::parse("127.0.0.6")};
  const PodView pod = side_of(show_json({}, routing, {})).pod;
  Plan plan;
  plan.routing = routing;
  plan.families = Families::both();
  const PodView wanted = assumed_pod(plan);
  const auto text = [](const PodView& view) {
    std::string all;
    for (const Interface& interface : view.interfaces) {
      for (const InterfaceAddress& own : interface.addresses) all += interface.name + " " + own.address.text() + "\n";
    }
    for (const Route& route : view.routes) all += ip_words(route) + "\n";
    for (const PolicyRule& rule : view.rules) all += ip_words(rule) + "\n";
    return all;
  };
  EXPECT_EQ(text(pod), text(wanted));
  EXPECT_THAT(text(pod), ::testing::AllOf(HasSubstr("0x111/0xfff"), HasSubstr("::6")));
}

// A jump leads to a chain of the same table, or to none.
TEST(ReadRules, KnowNoChainOfAnotherTable) {
  std::vector<Live> live = various();
  live.front().chains[1].table = Table::mangle;
  live.front().chains[1].table_name = "mangle";
  for (LiveRule& rule : live.front().chains[1].rules) rule.rule.table = Table::mangle;
  const auto target = [](const std::vector<Live>& all) {
    return side_of(show_json(all, {}, {})).live.front().chains.front().rules[1].rule.target;
  };
  EXPECT_EQ(target(live), Target(UnknownTarget{"-j MINE"}));
  EXPECT_EQ(target(various()), Target(Jump{"MINE"}));
  live = various();
  live.front().chains[1].rules.clear();  // what is shown is there, if it has no rules, too
  EXPECT_EQ(target(live), Target(Jump{"MINE"}));
  Live tables;
  tables.backend = BackendKind::nftables;
  LiveChain one = chain(Families::both(), Table::other, "out", false, {{{}, Jump{"MINE"}}});
  one.table_name = "inet one";
  LiveChain other = chain(Families::both(), Table::other, "MINE", false, {{{}, Verdict::drop}});
  other.table_name = "inet other";
  tables.chains = {one, other};
  const Live read = side_of(show_json({{tables}}, {}, {})).live.front();
  EXPECT_EQ(read.chains.front().rules.front().rule.target, Target(UnknownTarget{"-j MINE"}));
}

// Conditions that are not understood may stand before others.
TEST(ReadRules, ConditionsThatAreNotUnderstoodAreToldByTheirWords) {
  const auto document = [](const std::string& rule) {
    return fmt::format(R"({{"chains": [{{"backend": "nftables", "families": ["ipv4"], "table": "inet t", "chain": "c",
        "whose": "other", "rules": [{{"number": 1, "families": ["ipv4"], "whose": "other", {}}}]}}],
        "routing": {{"rules": [], "routes": []}}}})",
                       rule);
  };
  const auto rule_of = [&](const std::string& rule) {
    return side_of(document(rule)).live.front().chains.front().rules.front().rule;
  };
  const Rule log = rule_of(R"("rule": "-A c limit rate 5/minute log prefix x", "unknown": ["limit rate 5/minute"])");
  EXPECT_EQ(log.matches, std::vector<Match>{UnknownMatch{"limit rate 5/minute"}});
  EXPECT_TRUE(std::holds_alternative<NonTerminating>(log.target));
  const Rule drop = rule_of(R"("rule": "-A c ip ttl 64 -p tcp --dport 22 -j DROP", "unknown": ["ip ttl 64"])");
  EXPECT_EQ(drop.matches.size(), 3U);
  EXPECT_EQ(drop.matches.back(), Match(UnknownMatch{"ip ttl 64"}));
  EXPECT_EQ(drop.target, Target(Verdict::drop));
  EXPECT_THAT([&] { static_cast<void>(rule_of(R"("rule": "-A c -j DROP", "unknown": ["ip ttl 64"])")); },
              ThrowsMessage<Error>(HasSubstr("unknown: [\"ip ttl 64\"]: expected words of the rule")));
  EXPECT_THAT([&] { static_cast<void>(rule_of(R"("rule": "-A c -j DROP", "unknown": [5])")); },
              ThrowsMessage<Error>(HasSubstr("unknown[0]: 5: expected a string")));
}

// What a map or a set holds is not in the words: of two documents it may differ.
TEST(ReadRules, WhatIsLookedUpIsToldApartByDocument) {
  const RulesText text{"a.json", R"({"chains": [{"backend": "nftables", "families": ["ipv4"], "table": "inet t",
      "chain": "c", "whose": "other", "rules": [
        {"number": 1, "families": ["ipv4"], "whose": "other", "rule": "-A c -p tcp dnat to what it looks up"},
        {"number": 2, "families": ["ipv4"], "whose": "other", "rule": "-A c -p tcp queue num 1"}]}],
      "routing": {"rules": [], "routes": []}})"};
  RulesText again = text;
  again.name = "b.json";
  const auto [one, other] = read_sides(text, again);
  const auto target = [](const space::Side& side, std::size_t rule) {
    return side.live.front().chains.front().rules[rule].rule.target;
  };
  EXPECT_EQ(target(one, 0), Target(UnknownTarget{"dnat to what it looks up (in a.json)"}));
  EXPECT_EQ(target(other, 0), Target(UnknownTarget{"dnat to what it looks up (in b.json)"}));
  EXPECT_EQ(target(one, 1), target(other, 1));
}

// What a rule of nf_tables does that iptables has no words for, `show` says in those of nft.
TEST(ReadRules, WordsOfNftAreWhatTheySay) {
  const auto target_of = [](const std::string& rule) {
    const std::string text = fmt::format(R"({{"chains": [{{"backend": "nftables", "families": ["ipv4"],
        "table": "inet t", "chain": "c", "whose": "other", "rules": [{{"number": 1, "families": ["ipv4"],
        "whose": "other", "rule": "-A c{}"}}]}}], "routing": {{"rules": [], "routes": []}}}})",
                                         rule);
    return side_of(text).live.front().chains.front().rules.front().rule.target;
  };
  for (const std::string matches : {"", " -p tcp"}) {
    EXPECT_EQ(target_of(matches + " reject with tcp reset"), Target(Reject{"reject with tcp reset"}));
    EXPECT_EQ(target_of(matches + " log prefix x"), Target(NonTerminating{"log prefix x"}));
    EXPECT_EQ(target_of(matches + " queue num 1"), Target(UnknownTarget{"queue num 1"}));
    EXPECT_EQ(target_of(matches + " logs"), Target(UnknownTarget{"logs"}));
    const Target masquerade = target_of(matches + " -j MASQUERADE --to-ports 5-9 --random-fully");
    EXPECT_TRUE(std::holds_alternative<Nat>(masquerade));
  }
  EXPECT_EQ(target_of(" -p tcp"), Target(NonTerminating{}));
}

// Whether a packet that the rules meet ends there, goes on, or is sent elsewhere: of each statement as of what is read.
TEST(ReadRules, OfNftDoAsTheRulesThatWereShown) {
  const RulesText text{"rules", R"(table inet t {
	chain c {
		type nat hook output priority -100; policy accept;
		meta l4proto tcp masquerade
		meta l4proto tcp masquerade to :5-9 random,persistent
		meta l4proto udp redirect
		tcp dport 80 redirect to :15001
		tcp dport 81 redirect to :15001-15009 fully-random
		tcp dport 82 dnat ip to 10.0.0.1
		tcp dport 83 dnat ip6 to [fd00::1]:80
		tcp dport 84 dnat ip to 10.0.0.1-10.0.0.9
		meta nfproto ipv4 snat ip to 10.0.0.1-10.0.0.9:80-90 persistent
		snat ip6 to fd00::1
		reject with icmpx port-unreachable
		tcp dport 85 reject with tcp reset
		ip daddr 10.0.0.1 reject
		log
		tcp dport 86 log group 3
		tcp dport vmap { 90-95 : drop, 100 : accept, 110-120 : jump d }
		limit rate 5/minute log prefix "x"
		ip ttl 64 tcp dport { 22, 23 } drop
		meta pkttype broadcast counter packets 1 bytes 2
		meta mark set 5
		ct mark set meta mark
		notrack
		queue num 1
		tcp dport 87 queue num 1-3 bypass
		meta l4proto tcp counter packets 1 bytes 2 drop
		counter packets 1 bytes 2
	}
	chain d {
		return
	}
}
)"};
  const std::vector<Live> live = read_texts({&text, 1}, false).live;
  const std::vector<Live> read = side_of(show_json(live, {}, {})).live;
  for (std::size_t i = 0; i < live.front().chains.size(); ++i) {
    const LiveChain& chain = live.front().chains[i];
    for (std::size_t j = 0; j < chain.rules.size(); ++j) {
      const Rule& rule = chain.rules[j].rule;
      const Rule& again = read.front().chains[i].rules[j].rule;
      EXPECT_EQ(again.target, rule.target) << iptables_words(rule);
      EXPECT_THAT(again.matches, ::testing::UnorderedElementsAreArray(rule.matches)) << iptables_words(rule);
    }
  }
}

// Words that only people understand are not known: of the rule's own chain alone, else the document is wrong.
TEST(ReadRules, KeepTheWordsThatAreNotUnderstood) {
  const auto document = [](const char* rule) {
    return fmt::format(R"({{"chains": [{{"backend": "iptables-nft", "families": ["ipv4", "ipv6"], "table": "filter",
        "chain": "C", "whose": "other", "rules": [{{"families": ["ipv6"], "whose": "Istio", "rule": "{}"}}]}}],
        "routing": {{"rules": [], "routes": []}}}})",
                       rule);
  };
  const LiveRule live = side_of(document("-A C words of show")).live.front().chains.front().rules.front();
  EXPECT_THAT(live.rule.matches, IsEmpty());
  EXPECT_EQ(live.rule.target, Target(UnknownTarget{"words of show"}));
  EXPECT_EQ(live.rule.families, Families(Family::ipv6));
  EXPECT_EQ(live.rule.table, Table::filter);
  EXPECT_EQ(live.rule.chain, "C");
  EXPECT_TRUE(live.ours);
  EXPECT_FALSE(side_of(document("-I C 3 -j DROP")).live.front().chains.front().rules.front().rule.insert_at);
  EXPECT_THAT([&] { static_cast<void>(side_of(document("-A D words of show"))); },
              ThrowsMessage<Error>(HasSubstr("a.json: '-A D words of show': expected a rule")));
}

TEST(ReadRules, RefuseWhatIsNoSuchDocument) {
  const auto said = [](const std::string& text) -> std::string {
    try {
      static_cast<void>(side_of(text));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_THAT(error.hint(), HasSubstr("sidetrack show --json"));
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(said("[]"), "a.json: document: []: expected an object");
  EXPECT_THAT(said("{"), ::testing::StartsWith("a.json: parse error at line 1, column 2"));
  EXPECT_EQ(said("{}"), "a.json: routing: missing: expected an object");
  EXPECT_EQ(said(R"({"routing": 7})"), "a.json: routing: 7: expected an object");
  const auto with_address = [&](const char* address) {
    return said(fmt::format(
        R"({{"rules": [], "routing": {{"rules": [], "routes": [], "addresses": [{{"address": "{}"}}]}}}})", address));
  };
  EXPECT_EQ(with_address("::6"), "");
  EXPECT_EQ(with_address("::6/128"), "");
  EXPECT_EQ(with_address("10.0.0.0/8"),
            "a.json: routing.addresses[0].address: \"10.0.0.0/8\": expected a single address");
  EXPECT_EQ(with_address("here"), "a.json: routing.addresses[0].address: \"here\": expected a single address");
}

// Every value of another type, one that is unknown, and one that is missing is named with its place.
TEST(ReadRules, NameTheValueThatIsWrong) {
  const auto said = [](const nlohmann::json& document) -> std::string {
    try {
      static_cast<void>(side_of(document.dump()));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const nlohmann::json shown = nlohmann::json::parse(R"({
    "backend": "nftables",
    "routing": {"rules": [{"family": "ipv4", "fwmark": 1, "fwmask": 2, "lookup": 3}],
                "routes": [{"family": "ipv6", "table": 4}], "addresses": [{"address": "::6"}]},
    "chains": [{"backend": "nftables", "families": ["ipv4"], "table": "inet mine", "chain": "C", "hook": "INPUT",
                "priority": -7, "type": "filter", "device": "eth7", "policy": "drop", "dormant": false,
                "rules": [{"families": ["ipv4"], "rule": "-A C -j DROP", "whose": "other"}]}]})");
  nlohmann::json rendered = shown;
  rendered.erase("chains");
  rendered["rules"] = {
      {{"table", "nat"}, {"backend", "nftables"}, {"families", {"ipv4"}}, {"rule", "-A OUTPUT -j DROP"}}};
  std::size_t values = 0;
  for (const nlohmann::json& document : {shown, rendered}) {
    ASSERT_EQ(said(document), "");
    const nlohmann::json flat = document.flatten();
    for (const auto& [place, value] : flat.items()) {
      if (!value.is_primitive()) continue;
      ++values;
      std::string name = place.substr(1);  // "routing/rules/0/fwmark"
      for (std::size_t at = name.find('/'); at != std::string::npos; at = name.find('/')) {
        const std::size_t end = std::min(name.find('/', at + 1), name.size());
        const bool is_index = std::isdigit(static_cast<unsigned char>(name[at + 1])) != 0;
        name = name.substr(0, at) + (is_index ? "[" : ".") + name.substr(at + 1, end - at - 1) + (is_index ? "]" : "") +
               name.substr(end);
      }
      for (const nlohmann::json& wrong : {nlohmann::json({{"a", 1}}), nlohmann::json(1.5)}) {
        nlohmann::json changed = document;
        changed[nlohmann::json::json_pointer(place)] = wrong;
        EXPECT_THAT(said(changed), ::testing::StartsWith("a.json: " + name + ": " + wrong.dump() + ": expected "));
      }
      nlohmann::json changed = document;
      nlohmann::json::json_pointer parent(place);
      const std::string key = parent.back();
      parent.pop_back();
      if (!changed[parent].is_object()) continue;
      changed[parent].erase(key);
      const bool is_optional = key == "fwmask" || key == "device" || key == "hook" ||
                               (key == "backend" && document == rendered) || parent.empty();
      EXPECT_THAT(said(changed), is_optional ? ::testing::StartsWith("")
                                             : ::testing::StartsWith("a.json: " + name + ": missing: expected "));
    }
  }
  EXPECT_GT(values, 25U);
  nlohmann::json changed = rendered;
  changed["backend"] = "nftable";
  EXPECT_EQ(said(changed), "a.json: backend: \"nftable\": expected iptables-legacy, iptables-nft, nftables");
  changed = shown;
  changed["routing"]["rules"][0]["fwmark"] = 4294967296;
  EXPECT_EQ(said(changed), "a.json: routing.rules[0].fwmark: 4294967296: expected a whole number from 0 to 4294967295");
  changed["routing"]["rules"] = {{"a", 1}};
  EXPECT_EQ(said(changed), "a.json: routing.rules: {\"a\":1}: expected a list of objects");
}

TEST(ReadRules, AreReadFromAFile) {
  const testing::TemporaryFile file("{}");
  const RulesText read = rules_of_file(file.path());
  EXPECT_EQ(read.name, file.path());
  EXPECT_EQ(read.text, "{}");
  EXPECT_THAT([] { static_cast<void>(rules_of_file("/no/such/file")); },
              ThrowsMessage<Error>("/no/such/file: No such file or directory (ENOENT)"));
  EXPECT_THAT([] { static_cast<void>(rules_of_file("/")); }, ThrowsMessage<Error>("/: Is a directory (EISDIR)"));
}

TEST(ReadRules, AreReadFromStandardInput) {
  const testing::StandardInput input("{}");
  const RulesText read = rules_of_file("-");
  EXPECT_EQ(read.name, "-");
  EXPECT_EQ(read.text, "{}");
}

}  // namespace
}  // namespace sidetrack
