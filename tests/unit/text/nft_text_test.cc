// SPDX-License-Identifier: GPL-2.0-or-later
// Rules of nft as they are pasted into reports. That they are read as the kernel's are, tests/kernel/answers shows.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <variant>

#include "model/error.h"
#include "rule/iptables.h"
#include "text/read_texts.h"
#include "unit/error_text.h"

namespace sidetrack {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

RulesOfTexts read_nft(const std::vector<std::string>& texts) {
  std::vector<RulesText> named;
  for (const std::string& text : texts) named.push_back({fmt::format("file{}", named.size() + 1), text});
  return read_texts(named, true);
}

// "inet t -A out -p tcp -j ACCEPT"; without the chains that a text that is cut off may lack.
std::vector<std::string> rules_of_nft(const std::vector<std::string>& texts) {
  std::vector<std::string> all;
  for (const Live& live : read_nft(texts).live) {
    for (const LiveChain& chain : live.chains) {
      if (chain.name.ends_with(" [cut off]")) continue;
      for (const LiveRule& rule : chain.rules) {
        const std::string families = rule.rule.families == chain.families ? "" : names(rule.rule.families) + " ";
        all.push_back(fmt::format("{} {}{}", chain.table_name, families, iptables_words(rule.rule)));
      }
    }
  }
  return all;
}

// Of one rule in a table of that family.
std::vector<std::string> rule(std::string_view words, std::string_view table = "inet t") {
  std::vector<std::string> all =
      rules_of_nft({fmt::format("table {} {{\n\tchain c {{\n\t\t{}\n\t}}\n\tchain d {{\n\t}}\n}}\n", table, words)});
  for (std::string& each : all) each.erase(0, table.size() + 1);
  return all;
}

// Whether the rule certainly has no end of its own.
bool goes_on(std::string_view words) {
  const std::string text = fmt::format("table inet t {{\n\tchain c {{\n\t\t{}\n\t}}\n}}\n", words);
  const RulesOfTexts read_once = read_nft({text});
  return std::ranges::all_of(read_once.live.front().chains.front().rules, [](const LiveRule& each) {
    return !std::holds_alternative<UnknownTarget>(each.rule.target);
  });
}

std::string notes_of_nft(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& note : read_nft(texts).notes) all += note + "\n";
  return all;
}

std::string refused(const std::string& text) {
  return testing::error_text([&] { static_cast<void>(read_nft({text})); });
}

TEST(NftText, HasWhatNftLeavesOut) {
  EXPECT_THAT(rule("ip daddr 10.0.0.0/8 tcp dport 80 accept"),
              ElementsAre("ipv4 -A c -d 10.0.0.0/8 -p tcp --dport 80 -j ACCEPT"));
  EXPECT_THAT(rule("ip6 saddr != fd00::1 udp sport 1024-65535 drop"),
              ElementsAre("ipv6 -A c ! -s fd00::1/128 -p udp --sport 1024:65535 -j DROP"));
  EXPECT_THAT(rule("meta l4proto tcp tcp dport { 80, 443 } counter packets 1 bytes 2 jump d"),
              ElementsAre("-A c -p tcp -m multiport --dports 80,443 -j d"));
  EXPECT_THAT(rule("ip daddr 10.0.0.1 accept", "ip t"), ElementsAre("-A c -d 10.0.0.1/32 -j ACCEPT"));
}

TEST(NftText, HasNumbersForNames) {
  EXPECT_THAT(rule("meta l4proto 6 ct state 0x2,0x4 ct direction 1 tcp flags 0x2 / 0x2,0x10 accept"),
              rule("meta l4proto tcp ct state established,related ct direction reply tcp flags syn / syn,ack accept"));
  EXPECT_THAT(rule("tcp flags & (syn | ack) == syn accept"), rule("tcp flags syn / syn,ack accept"));
  EXPECT_THAT(rule("tcp flags ! syn,rst accept"), rule("tcp flags & (syn | rst) == 0x0 accept"));
  EXPECT_THAT(rule("meta mark and 0xff == 0x5 meta mark set mark or 0x10"),
              rule("meta mark & 0x000000ff == 0x00000005 meta mark set meta mark & 0xffffffff | 0x00000010"));
}

TEST(NftText, KnowsWhereARuleBreaksOff) {
  EXPECT_THAT(rule("tcp dport ..."), ElementsAre("-A c tcp dport ... [cut off]"));
}

// Of which interface it is the index, or would be, the text does not tell.
TEST(NftText, LeavesOpenTheIndexOfAnInterface) {
  EXPECT_THAT(rule("iif \"eth0\" drop"), ElementsAre("-A c -i eth0 -j DROP"));
  EXPECT_THAT(rule("iif 0 drop"), ElementsAre("-A c iif 0 -j DROP"));
  EXPECT_THAT(rule("oif 7 drop"), ElementsAre("-A c oif 7 -j DROP"));
  EXPECT_THAT(rule("iifname \"7\" drop"), ElementsAre("-A c -i 7 -j DROP"));
}

TEST(NftText, KeepsWhatItDoesNotUnderstand) {
  EXPECT_THAT(
      rule("fib daddr oif \"eth0\" limit rate 5/minute burst 7 packets tcp dport 80 accept"),
      ElementsAre("-A c fib daddr oif \"eth0\" limit rate 5/minute burst 7 packets -p tcp --dport 80 -j ACCEPT"));
  EXPECT_THAT(
      rule("icmp type { echo-request, echo-reply } log prefix \"a, b\" level info flags tcp sequence,options drop"),
      ElementsAre("ipv4 -A c -p icmp icmp type { echo-request, echo-reply } log prefix \"a, b\" level info flags "
                  "tcp sequence,options",
                  "ipv4 -A c -p icmp icmp type { echo-request, echo-reply } -j DROP"));
  EXPECT_THAT(rule("osf name \"Linux\" ip ttl 5 accept"), ElementsAre("-A c osf name \"Linux\" ip ttl 5 -j ACCEPT"));
  EXPECT_THAT(rule("tcp dport 80 queue flags bypass to 1-3"),
              ElementsAre("-A c -p tcp --dport 80 queue flags bypass to 1-3"));
  EXPECT_THAT(rule("tcp option maxseg size set rt mtu"), ElementsAre("-A c tcp option maxseg size set rt mtu"));
  EXPECT_THAT(rule("dnat ip addr . port to ip saddr map { 10.0.0.1 : 10.0.0.2 . 80 }"),
              ElementsAre("-A c dnat ip addr . port to ip saddr map { 10.0.0.1 : 10.0.0.2 . 80 }"));
  EXPECT_EQ(rule("numgen random mod 2 vmap { 0 : accept, 1 : jump d }").size(), 2U);  // a rule for each
  EXPECT_EQ(rule("jhash ip saddr mod 2 seed 0x1 vmap { 0 : accept, 1 : jump d }").size(), 2U);
  EXPECT_THAT(rule("tcp dport @nowhere accept"), ElementsAre("-A c -p tcp tcp dport @nowhere -j ACCEPT"));
  EXPECT_THAT(rule("tcp dport accept"), Not(IsEmpty()));
}

TEST(NftText, KnowsThatOneOfAllNumbersIsMet) {
  EXPECT_THAT(rule("numgen random mod 1 vmap { 0 : goto d }"), ElementsAre("-A c -g d"));
  EXPECT_THAT(rule("numgen inc mod 1 vmap { 0 : jump d }"), ElementsAre("-A c -j d"));
  EXPECT_THAT(rule("numgen random mod 2 vmap { 0 : goto d, 1 : goto e }"),
              ElementsAre("-A c numgen random mod 2 0 -g d", "-A c -g e"));
  EXPECT_THAT(rule("numgen random mod 3 vmap { 0 : goto d, 1 : goto e }"),
              ElementsAre("-A c numgen random mod 3 0 -g d", "-A c numgen random mod 3 1 -g e"));
  EXPECT_THAT(rule("numgen random mod 2 offset 5 vmap { 5 : goto d }"), Not(Contains("-A c -g d")));
}

// As kube-proxy looks up all services of a cluster.
TEST(NftText, KnowsAllElementsOfALargeMap) {
  const auto looked_up = [](int elements, int rules) {
    std::string text = "table ip t {\n\tmap m {\n\t\ttype ipv4_addr . inet_service : verdict\n\t\telements = { ";
    for (int i = 0; i < elements; ++i) text += fmt::format("10.0.{}.{} . 80 : drop, ", i / 256, i % 256);
    text += "}\n\t}\n\tchain c {\n";
    for (int i = 0; i < rules; ++i) text += "\t\tip daddr . tcp dport vmap @m\n";
    return rules_of_nft({text + "\t\tmeta mark set 1 accept\n\t}\n}\n"});
  };
  const std::vector<std::string> known = looked_up(2000, 1);
  EXPECT_EQ(known.size(), 2002U);
  EXPECT_EQ(known[1999], "ip t -A c -p tcp -d 10.0.7.207/32 --dport 80 -j DROP");
  EXPECT_EQ(looked_up(20000, 1).front(), "ip t -A c -p tcp vmap @m: too many elements");
  // All rules together are so many at most, however often a map is looked up.
  const std::vector<std::string> often = looked_up(1000, 200);
  EXPECT_LT(often.size(), 140000U);
  EXPECT_THAT(often[often.size() - 3], HasSubstr("vmap @m"));
  // One of few parts is known even then.
  EXPECT_EQ(often[often.size() - 2], "ip t -A c -j MARK --set-mark 1");
  EXPECT_EQ(often.back(), "ip t -A c -j ACCEPT");
}

TEST(NftText, ReadsDestinationsWithoutTheirTo) {
  EXPECT_THAT(rule("dnat 192.168.26.100:22"), ElementsAre("-A c -j DNAT --to-destination 192.168.26.100:22"));
  EXPECT_THAT(rule("redirect to 26"), ElementsAre("-A c -j REDIRECT --to-ports 26"));
}

TEST(NftText, KeepsRangesOfTextsTogether) {
  EXPECT_THAT(rule("meta hour \"08:00\"-\"17:00\" drop"), ElementsAre("-A c meta hour \"08:00\"-\"17:00\" -j DROP"));
  EXPECT_THAT(rule("ct event set new,destroy drop"), ElementsAre("-A c ct event set new,destroy", "-A c -j DROP"));
}

TEST(NftText, LeavesOpenWhatMayDecide) {
  EXPECT_THAT(rule("xyzzy to :123"), ElementsAre("-A c xyzzy to :123"));
  for (const std::string_view words : {"xyzzy to :123", "frobnicate", "flow add @ft", "frobnicate counter",
                                       "dup to ip saddr map { 10.0.0.1 : 10.0.0.2 }", "dup",
                                       "tcp dport 80 xyzzy log prefix \"accept\" meta mark set 0x1"})
    EXPECT_FALSE(goes_on(words)) << words;
  for (const std::string_view words :
       {"counter", "osf name \"Linux\" counter", "tcp option sack-perm exists counter", "log prefix \"xyzzy\"",
        "dup to 10.0.0.1", "dup to 10.0.0.1 device \"eth0\"", "limit rate 5/minute burst 7 packets"})
    EXPECT_TRUE(goes_on(words)) << words;
  EXPECT_THAT(rule("frobnicate tcp dport 80 accept"), ElementsAre("-A c frobnicate tcp dport 80 -j ACCEPT"));
}

TEST(NftText, ReadsTablesOfIptablesAsIptables) {
  const auto of_iptables = [](std::string_view words) { return rule(words, "ip nat"); };
  EXPECT_THAT(of_iptables("meta l4proto tcp skuid != 1337 counter packets 0 bytes 0 redirect to :15001 random"),
              ElementsAre("-A c -p tcp -m owner ! --uid-owner 1337 -j REDIRECT --to-ports 15001 --random"));
  EXPECT_THAT(of_iptables("meta l4proto tcp ct state ! invalid counter packets 0 bytes 0 dnat to 10.0.0.1:80"),
              ElementsAre("-A c -p tcp -m conntrack ! --ctstate INVALID -j DNAT --to-destination 10.0.0.1:80"));
  EXPECT_THAT(of_iptables("counter packets 0 bytes 0 ct mark set ct mark xor 0x5 and 0xfffffff8"),
              ElementsAre("-A c -j CONNMARK --set-xmark 0x5/0x7"));
  EXPECT_THAT(of_iptables("# match-set f2b src counter packets 0 bytes 0 # TPROXY redirect 0.0.0.0:15006"),
              ElementsAre("-A c # match-set f2b src # TPROXY redirect 0.0.0.0:15006"));
  EXPECT_THAT(
      of_iptables("xt match \"string\" counter packets 0 bytes 0 xt target \"TPROXY\""),
      ElementsAre("-A c -m string [options that nft does not print] -j TPROXY [options that nft does not print]"));
  EXPECT_THAT(notes_of_nft({"table ip nat {\n\tchain c {\n\t\txt match string counter xt target LOG\n\t}\n}\n"}),
              HasSubstr("that nft does not print whole: 2; ask for the output of: iptables-save; ip6tables-save"));
}

// iptables 1.8.9 translates `multiport --ports` and `multiport ! --ports` to one text.
TEST(NftText, LeavesOpenWhatIptablesTranslatesWithoutItsNegation) {
  for (const std::string_view match :
       {"tcp sport . tcp dport { 0-65535 . 80, 80 . 0-65535 }", "th sport . th dport { 0-65535 . 80, 80 . 0-65535 }",
        "tcp sport . tcp dport @ports", "ct status dnat"}) {
    const std::string words = fmt::format("meta l4proto tcp {} counter packets 0 bytes 0 return", match);
    EXPECT_THAT(rule(words, "ip nat"), ElementsAre(fmt::format("-A c -p tcp {} -j RETURN", match)));
    EXPECT_THAT(notes_of_nft({fmt::format("table ip nat {{\n\tchain c {{\n\t\t{}\n\t}}\n}}\n", words)}),
                HasSubstr("that nft does not print whole: 1; ask for the output of: iptables-save"));
  }
  EXPECT_THAT(rule("tcp sport . tcp dport { 0-65535 . 80 } drop"),
              ElementsAre("-A c -p tcp --sport 0:65535 --dport 80 -j DROP"));
}

constexpr const char* listing = R"(table inet t { # handle 3
	comment "of the node"
	set some { # handle 1
		typeof ip daddr . tcp dport
		flags interval
		elements = { 10.0.0.0/8 . 80-90,
			     10.1.1.1 . 53 counter packets 0 bytes 0 comment "dns" }
	}

	set growing {
		type ipv4_addr
		flags dynamic,timeout
		timeout 1m
	}

	map verdicts {
		type inet_service : verdict
		elements = { 22 : accept, 80-90 : jump web,
			     * : drop }
	}

	quota much {
		over 5 mbytes used 0 bytes
	}

	chain web {
		comment "of web"
	}

	chain out {
		type filter hook output priority mangle - 5; policy drop;
		ip daddr . tcp dport @some accept comment "both" # handle 9
		ip daddr @growing drop
		tcp dport vmap @verdicts
	}
}
)";

TEST(NftText, ReadsSetsAndMaps) {
  EXPECT_THAT(rules_of_nft({listing}),
              ElementsAre("inet t ipv4 -A out -p tcp -d 10.0.0.0/8 --dport 80:90 -j ACCEPT",
                          "inet t ipv4 -A out -p tcp -d 10.1.1.1/32 --dport 53 -j ACCEPT",
                          "inet t ipv4 -A out @growing: packets and time change what it holds -j DROP",
                          "inet t -A out -p tcp vmap @verdicts"));
  const RulesOfTexts read_once = read_nft({listing});
  const LiveChain& out = read_once.live.front().chains.back();
  EXPECT_EQ(out.hook, (HookPoint{Hook::output, -155, ChainType::filter, {}}));
  EXPECT_EQ(out.policy, Verdict::drop);
  EXPECT_EQ(out.rules.front().rule.origin.comment, "both");
  const LiveTable& table = read_once.live.front().tables.front();
  EXPECT_TRUE(table.other_objects);
  EXPECT_THAT(table.jumps, ElementsAre(MapJump{"verdicts", "web"}));
}

TEST(NftText, TakesWhatIsAddedOnTheWay) {
  std::string quoted = "It fails:\n> ```\n> root@web-0:/# nft list ruleset\n";
  std::string logged = "2024-01-02T03:04:05Z starting\n";
  const std::string text = listing;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find('\n', at);
    std::string line = text.substr(at, end - at);
    logged += "2024-01-02T03:04:06.123Z node-1: " + line + "\r\n";
    for (auto mark = line.find('"'); mark != std::string::npos; mark = line.find('"')) line.replace(mark, 1, "\u201d");
    quoted += "> " + line + "\n";
    at = end + 1;
  }
  EXPECT_EQ(rules_of_nft({quoted + "> ```\n"}), rules_of_nft({listing}));
  EXPECT_EQ(rules_of_nft({logged}), rules_of_nft({listing}));
}

// nft 1.1 without the extensions of iptables writes warnings into the rules.
TEST(NftText, JoinsRulesThatAMailHasWrapped) {
  const std::vector<std::string> whole = {"inet t -A c -p tcp --dport 80 -j DROP", "inet t -A c -p tcp -j ACCEPT"};
  for (const std::string margin : {"", "> "}) {
    for (const char* wrapped : {"table inet t {\n\tchain c {\n\t\ttype filter hook output priority filter;\npolicy "
                                "accept;\n\t\ttcp dport\n80\n"
                                "drop\n\t\tmeta l4proto tcp accept\n\t}\n}\n",
                                "table inet t {\n  chain c {\n    tcp dport {\n80 } drop\n    meta l4proto tcp\naccept "
                                "# handle 3\n  }\n}\n",
                                "table inet t {\n\tchain c {\n\t\ttcp dport 80\n        drop\n\t\tmeta l4proto "
                                "tcp\n\t\t\t\taccept\n\t}\n}\n"}) {
      std::string text = margin;
      for (const char* c = wrapped; *c != '\0'; ++c) {
        text += *c;
        if (*c == '\n' && c[1] != '\0') text += margin;
      }
      EXPECT_THAT(rules_of_nft({text}), whole) << text;
    }
  }
  // Without margins each line is a rule of its own.
  EXPECT_THAT(rules_of_nft({"table inet t {\nchain c {\ntcp dport 80 drop\nmeta l4proto tcp accept\n}\n}\n"}), whole);
}

TEST(NftText, KnowsLinesThatStandForOthers) {
  EXPECT_THAT(rule("...\n\t\ttcp dport 80 drop"), ElementsAre("-A c -p tcp --dport 80 -j DROP"));
  const Live live = read_nft({"table inet t {\n\tchain c {\n...\n\t\ttcp dport 80 drop\n\t}\n}\n"}).live.front();
  EXPECT_EQ(std::ranges::count_if(live.chains, [](const LiveChain& each) { return each.hook.has_value(); }), 10)
      << "five of the table, and five of another one of which the first line may be among them";
}

TEST(NftText, KnowsTheNamesOfPorts) {
  EXPECT_THAT(rule("tcp dport { ssh, http-alt } drop"),
              ElementsAre("-A c -p tcp -m multiport --dports 22,8080 -j DROP"));
  EXPECT_THAT(rule("udp sport domain-https drop"), ElementsAre("-A c -p udp --sport 53:443 -j DROP"));
}

TEST(NftText, TakesWarningsOutOfRules) {
  EXPECT_THAT(rules_of_nft(
                  {"table ip raw {\n\tchain c {\n\t\tmeta l4proto udp # Warning: XT match string not found\n"
                   "xt match \"string\" counter packets 0 bytes 0 # Warning: XT target CT not found\nxt target \"CT\"\n"
                   "\t\tdrop\n\t}\n}\n"}),
              ElementsAre("ip raw -A c -p udp -m string [options that nft does not print] -j CT [options that nft does "
                          "not print]",
                          "ip raw -A c -j DROP"));
}

std::string in_nat(std::string_view lines) { return fmt::format("table ip nat {{\n\tchain c {{\n{}\t}}\n}}\n", lines); }

// nft 1.0.6 without the extensions of iptables leaves a blank for each, and says so on standard error.
TEST(NftText, MissesWhatNftLeavesOut) {
  const std::string text = in_nat(
      "\t\t counter packets 0 bytes 0 return\n"
      "\t\tmeta l4proto tcp  counter packets 0 bytes 0 return\n"
      "\t\toifname \"lo\" counter packets 0 bytes 0\n"
      "\t\tmeta l4proto tcp counter packets 0 bytes 0 \r\n");
  EXPECT_THAT(rules_of_nft({text}),
              ElementsAre("ip nat -A c [matches that nft may not print] -j RETURN",
                          "ip nat -A c -p tcp [matches that nft may not print] -j RETURN", "ip nat -A c -o lo",
                          "ip nat -A c -p tcp [a target that nft does not print]"));
  EXPECT_THAT(notes_of_nft({text}),
              HasSubstr("targets of iptables that nft does not print: 1, and maybe matches; ask for the "
                        "output of: iptables-save; ip6tables-save"));
  EXPECT_THAT(rules_of_nft({in_nat("\t\tcounter packets 0 bytes 0  # handle 2\n")}),
              ElementsAre("ip nat -A c [matches that nft may not print] [a target that nft does not print]"));
  const std::string whole = in_nat("\t\tmeta l4proto tcp  counter packets 0 bytes 0 return # handle 2\n");
  EXPECT_THAT(rules_of_nft({whole}), ElementsAre("ip nat -A c -p tcp -j RETURN"));  // a comment of iptables
  EXPECT_THAT(notes_of_nft({whole}), Not(HasSubstr("does not print")));
  EXPECT_THAT(rule("counter packets 0 bytes 0 "), ElementsAre("-A c"));
}

TEST(NftText, TakesNamesOfWhatIsLeftOut) {
  const std::string text = in_nat(
      "\t\tXT match owner not found\n counter packets 0 bytes 0 return # handle 7\n"
      "\t\tmeta l4proto tcp counter packets 0 bytes 0 XT target REDIRECT not found\n # handle 8\n"
      "\t\tcounter packets 0 bytes 0 XT target LOG not found\n\n\t\taccept\n");
  EXPECT_THAT(rules_of_nft({text}),
              ElementsAre("ip nat -A c -m owner [options that nft does not print] -j RETURN",
                          "ip nat -A c -p tcp -j REDIRECT [options that nft does not print]",
                          "ip nat -A c -j LOG [options that nft does not print]", "ip nat -A c -j ACCEPT"));
  EXPECT_THAT(notes_of_nft({text}),
              HasSubstr("that nft does not print whole: 3; ask for the output of: iptables-save"));
}

TEST(NftText, SaysWhereATextIsCutOff) {
  const std::string text =
      "table inet t {\n\tchain c {\n\t\ttcp dport { 80, 443 } accept\n\t\ttcp dport 8080 drop\n\t}\n}";
  EXPECT_THAT(notes_of_nft({text}), Not(HasSubstr("no closing brace")));
  for (std::size_t size = text.find('{') + 1; size < text.size(); ++size) {
    EXPECT_THAT(notes_of_nft({text.substr(0, size)}),
                HasSubstr("file1:1: the table inet t has no closing brace: its end may be missing"));
  }
  const auto cut_behind = [&](std::string_view words) {
    return rules_of_nft({text.substr(0, text.find(words) + words.size())});
  };
  EXPECT_THAT(cut_behind("{ 80,"), ElementsAre("inet t -A c tcp dport { 80, [cut off]"));
  EXPECT_THAT(cut_behind("} accept"), ElementsAre("inet t -A c tcp dport { 80, 443 } accept [cut off]"));
  EXPECT_THAT(cut_behind("dport 80"), Not(Contains(HasSubstr("-j DROP"))));
  for (const std::string_view more : {"", "table ip nat {\n}\n"})
    EXPECT_THAT(rules_of_nft({fmt::format("table inet t {{\n\tchain c {{\n\t\ttcp dport {{ 80,\n{}", more)}),
                ElementsAre("inet t -A c tcp dport { 80, [cut off]"));
}

TEST(NftText, ReadsPartsOfAListing) {
  const std::string chain =
      "table ip nat {\n\tchain OUTPUT {\n\t\ttype nat hook output priority -100; policy accept;\n"
      "\t\tcounter packets 0 bytes 0 jump MINE\n\t}\n}\n";
  EXPECT_THAT(rules_of_nft({chain}), ElementsAre("ip nat -A OUTPUT -j MINE"));
  EXPECT_THAT(notes_of_nft({chain}), HasSubstr("the text has no chain MINE: what its rules do is not known"));
  EXPECT_THAT(notes_of_nft({chain}), HasSubstr("rules of iptables-legacy are taken to be none"));
  EXPECT_THAT(notes_of_nft({chain, chain}), HasSubstr("file2:1: the table ip nat once more: these rules count"));
  EXPECT_THAT(rules_of_nft({"table inet t {\n\tchain c {\n\t\ttcp dport 80 acc"}), Not(IsEmpty()));  // cut off
  EXPECT_THAT(rules_of_nft({"table ip nat {\n}\n"}), IsEmpty());
  EXPECT_THAT(
      rules_of_nft(
          {"table ip t { # progname nft # handle 1\n\tflags owner\n\tchain c { # handle 1\n\t\tdrop # handle 2\n"}),
      ElementsAre("ip t -A c -j DROP", "ip t -A c [cut off]"));
  const std::string terse =
      "table ip t {\n\tset s {\n\t\ttype inet_service\n\t}\n\tchain c {\n\t\ttcp dport @s drop\n\t}\n}\n";
  EXPECT_THAT(notes_of_nft({terse}), HasSubstr("taken as empty: the set ip t s"));
  std::string whole = terse;
  whole.insert(whole.find("\tchain"), "\tset f {\n\t\ttype inet_service\n\t\telements = { 80 }\n\t}\n");
  EXPECT_THAT(notes_of_nft({whole}), Not(HasSubstr("taken as empty")));
}

TEST(NftText, NamesPrioritiesAsTheFamilyHasThem) {
  const auto priority = [](std::string_view table, std::string_view words) {
    const std::string text = fmt::format(
        "table {} t {{\n\tchain c {{\n\t\ttype filter hook prerouting priority {}; policy drop;\n\t}}\n}}\n", table,
        words);
    return read_nft({text}).live.front().chains.front().hook->priority;
  };
  EXPECT_EQ(priority("inet", "dstnat"), -100);
  EXPECT_EQ(priority("bridge", "dstnat"), -300);
  EXPECT_EQ(priority("ip", "filter + 10"), 10);
  EXPECT_EQ(priority("ip6", "raw"), -300);
  EXPECT_EQ(priority("ip", "-7"), -7);
  EXPECT_THAT(
      refused("table ip t {\n\tchain c {\n\t\ttype filter hook somewhere priority 0;\n\t}\n}\n"),
      HasSubstr("file1:1: the chain c is of type filter at the hook somewhere: expected filter, nat or route, at "
                "prerouting"));
}

constexpr const char* document = R"(# nft -j list ruleset
{"nftables": [{"metainfo": {"version": "1.0.9"}},
 {"table": {"family": "inet", "name": "t", "handle": 1, "flags": "dormant"}},
 {"set": {"family": "inet", "name": "s", "table": "t", "type": "ipv4_addr", "flags": ["interval"],
          "elem": [{"prefix": {"addr": "10.0.0.0", "len": 8}}, {"elem": {"val": "192.0.2.1", "comment": "x"}}]}},
 {"chain": {"family": "inet", "table": "t", "name": "c", "type": "nat", "hook": "output", "prio": -100, "policy": "accept"}},
 {"rule": {"family": "inet", "table": "t", "chain": "c", "comment": "the rule", "expr": [
   {"match": {"op": "==", "left": {"payload": {"protocol": "ip", "field": "daddr"}}, "right": "@s"}},
   {"match": {"op": "==", "left": {"payload": {"protocol": "tcp", "field": "dport"}}, "right": {"range": [80, 90]}}},
   {"counter": {"packets": 3, "bytes": 4}},
   {"dnat": {"family": "ip", "addr": "10.0.0.9", "port": 80, "flags": ["random", "persistent"]}}]}},
 {"rule": {"family": "inet", "table": "t", "chain": "c", "expr": [
   {"match": {"op": "==", "left": {"fib": {"result": "type", "flags": ["daddr"]}}, "right": "local"}}, {"new": {}}]}}]}
#)";

TEST(NftText, ReadsJson) {
  EXPECT_THAT(rules_of_nft({document}),
              ElementsAre("inet t ipv4 -A c -d 10.0.0.0/8,192.0.2.1/32 -p tcp --dport 80:90 -j DNAT --to-destination "
                          "10.0.0.9:80 --random --persistent",
                          "inet t -A c -m addrtype --dst-type LOCAL new {}"));
  const RulesOfTexts read_once = read_nft({document});
  const LiveChain& chain = read_once.live.front().chains.front();
  EXPECT_TRUE(chain.dormant);
  EXPECT_EQ(chain.rules.front().counters, (Counters{3, 4}));
  EXPECT_EQ(chain.rules.front().rule.origin.comment, "the rule");
  EXPECT_THAT(rules_of_nft({"{\"nftables\": [{\"metainfo\": {}}]}"}), IsEmpty());
  std::string flags = document;
  flags.replace(flags.find("\"dormant\""), 9, "\"t\"");
  EXPECT_THAT(notes_of_nft({flags}), HasSubstr("file1:2: the flags of the table inet t are missing"));
}

TEST(NftText, RefusesJsonThatIsNotOfNft) {
  for (const std::string_view objects :
       {"3", "{}", "[5]", R"([{"chain": 5}])", R"([{"rule": {}}])", R"([{"table": {"family": "ipx", "name": "t"}}])",
        R"([{"rule": {"family": "ip", "table": "t", "chain": "none", "expr": []}}])"}) {
    EXPECT_THROW(static_cast<void>(rules_of_nft({fmt::format("{{\"nftables\": {}}}", objects)})), Error) << objects;
  }
}

// nft 1.0.6 does not print the flag "dynamic" in JSON, and older ones do not in text.
TEST(NftText, KnowsNothingOfSetsThatRulesFill) {
  for (const std::string_view change : {"add", "update", "delete"}) {
    const std::string json = fmt::format(
        R"({{"nftables": [{{"set": {{"family": "ip", "name": "e", "table": "t", "type": "ipv4_addr", "size": 65535}}}},
            {{"chain": {{"family": "ip", "table": "t", "name": "c"}}}},
            {{"rule": {{"family": "ip", "table": "t", "chain": "c", "expr": [
              {{"match": {{"op": "==", "left": {{"payload": {{"protocol": "ip", "field": "saddr"}}}}, "right": "@e"}}}},
              {{"drop": null}}]}}}},
            {{"rule": {{"family": "ip", "table": "t", "chain": "c", "expr": [
              {{"set": {{"op": "{}", "elem": {{"payload": {{"protocol": "ip", "field": "saddr"}}}}, "set": "@e"}}}}]}}}}]}})",
        change);
    const std::string text = fmt::format(
        "table ip t {{\n\tset e {{\n\t\ttype ipv4_addr\n\t}}\n\tchain c {{\n\t\tip saddr @e drop\n\t\t{} @e {{ ip "
        "saddr }}\n\t}}\n}}\n",
        change);
    const std::string look_up = "ip t -A c @e: packets and time change what it holds -j DROP";
    EXPECT_THAT(rules_of_nft({json}), ElementsAre(look_up, fmt::format("ip t -A c {} @e ip saddr", change)));
    EXPECT_THAT(rules_of_nft({text}), ElementsAre(look_up, fmt::format("ip t -A c {} @e {{ ip saddr }}", change)));
    EXPECT_THAT(notes_of_nft({json, text}), Not(HasSubstr("taken as empty")));
    // As it writes a change of a map.
    std::string as_text = json;
    const auto change_start = as_text.find("{\"set\": {\"op\"");
    as_text.replace(change_start, as_text.find("]}}]}", change_start) - change_start,
                    fmt::format("\"{} @e {{ ip saddr }}\"", change));
    EXPECT_THAT(rules_of_nft({as_text}), Contains(look_up));
  }
}

TEST(NftText, WritesWhatItDoesNotUnderstandOfJsonAsNft) {
  const auto written = [](std::string_view statement) {
    const std::vector<std::string> all =
        rules_of_nft({fmt::format(R"({{"nftables": [{{"table": {{"family": "ip", "name": "t"}}}},
                         {{"chain": {{"family": "ip", "table": "t", "name": "c"}}}},
                         {{"rule": {{"family": "ip", "table": "t", "chain": "c", "expr": [{}]}}}}]}})",
                                  statement)});
    return all.empty() ? "" : all.front().substr(std::string_view("ip t -A c ").size());
  };
  EXPECT_EQ(written(R"({"match": {"op": "==", "left": {"payload": {"protocol": "ip", "field": "ttl"}}, "right": 5}})"),
            "ip ttl 5");
  EXPECT_EQ(written(R"({"xt": {"type": "match", "name": "comment"}}, {"drop": null})"), "-j DROP");
  EXPECT_EQ(written(R"({"vmap": {"key": {"numgen": {"mode": "random", "mod": 1, "offset": 0}},
                       "data": {"set": [[0, {"drop": null}]]}}})"),
            "-j DROP");
  EXPECT_EQ(written(R"({"match": {"op": "!=", "left": {"meta": {"key": "length"}}, "right": {"range": [1, 9]}}})"),
            "meta length != 1-9");
  EXPECT_EQ(written(R"({"match": {"op": "in", "left": {"ct": {"key": "helper"}}, "right": ["ftp", "sip"]}})"),
            "ct helper ftp,sip");
  EXPECT_EQ(
      written(R"({"match": {"op": "==", "left": {"rt": {"key": "mtu"}}, "right": {"set": [1, {"range": [3, 4]}]}}})"),
      "rt mtu { 1, 3-4 }");
  EXPECT_EQ(written(R"({"limit": {"rate": 5, "per": "minute", "burst": 7}})"), "limit rate 5/minute burst 7 packets");
  EXPECT_EQ(written(R"({"limit": {"rate": 5, "rate_unit": "mbytes", "per": "second", "burst": 6, "burst_unit": "kbytes",
                       "inv": true}})"),
            "limit rate over 5 mbytes/second burst 6 kbytes");
  EXPECT_EQ(written(R"({"limit": {"rate": 5, "per": "day", "burst": 7, "inv": false}})"),
            "limit rate 5/day burst 7 packets");
  EXPECT_EQ(written(R"({"quota": {"val": 100, "val_unit": "mbytes", "inv": true}})"), "quota over 100 mbytes");
  EXPECT_EQ(written(R"({"ct count": {"val": 20, "inv": true}})"), "ct count over 20");
  EXPECT_EQ(written(R"({"ct count": {"val": 20}})"), "ct count 20");
  EXPECT_EQ(
      written(R"({"match": {"op": "==", "left": {"ipsec": {"dir": "in", "family": "ip", "key": "saddr", "spnum": 0}},
                       "right": "192.0.2.1"}})"),
      "ipsec in ip saddr 192.0.2.1");
  EXPECT_EQ(written(R"({"match": {"op": "==", "left": {"tcp option": {"name": "maxseg"}}, "right": true}})"),
            "tcp option maxseg exists");
  EXPECT_EQ(
      written(R"({"match": {"op": "==", "left": {"&": [{"payload": {"protocol": "ip", "field": "frag-off"}}, 8191]},
                       "right": 0}})"),
      "ip frag-off & 8191 == 0");
  EXPECT_EQ(written(R"({"mangle": {"key": {"ct": {"key": "event"}}, "value": ["new", "destroy"]}})"),
            "ct event set new,destroy");
  EXPECT_EQ(written(R"({"queue": {"num": 3}})"), "queue to 3");
  EXPECT_EQ(written(R"({"dnat": {"addr": "10.0.0.1", "port": {"map": {"key": {"payload": {"protocol": "tcp",
                       "field": "dport"}}, "data": {"set": [[80, 8080]]}}}}})"),
            "dnat to 10.0.0.1:tcp dport map { 80 : 8080 }");
}

TEST(NftText, UnderstandsTypesOfAddresses) {
  EXPECT_THAT(rule("fib daddr type local return"), ElementsAre("-A c -m addrtype --dst-type LOCAL -j RETURN"));
  EXPECT_THAT(rule("fib saddr . iif type != { local, broadcast } drop"),
              ElementsAre("-A c -m addrtype ! --src-type LOCAL,BROADCAST --limit-iface-in -j DROP"));
  EXPECT_THAT(rule("fib daddr type 2 accept"), rule("fib daddr type local accept"));
}

TEST(NftText, ReadsPortsThatAMapGives) {
  EXPECT_THAT(rule("meta l4proto tcp redirect to :tcp dport map { 80 : 8080 }"),
              ElementsAre("-A c -p tcp --dport 80 redirect to a port that it looks up"));
  EXPECT_THAT(rule("meta l4proto tcp dnat ip to 10.0.0.1:tcp dport map { 80 : 8080 }"),
              ElementsAre("-A c -p tcp dnat ip to 10.0.0.1:tcp dport map { 80 : 8080 }"));
}

constexpr const char* in_lines =
    "table ip nat {\n\tset s {\n\t\ttype inet_service\n\t\telements = { 80, 90 }\n\t}\n\tchain web {\n\t\treturn\n\t}\n"
    "\tchain out {\n\t\ttype nat hook output priority -100; policy drop;\n\t\ttcp dport @s jump web\n"
    "\t\ttcp dport { 22, 23 } accept comment \"a; b\"\n\t}\n}\n";

// As nft takes them, not as it lists them.
TEST(NftText, ReadsTablesOfScripts) {
  const std::vector<std::string> expected = rules_of_nft({in_lines});
  EXPECT_EQ(expected.size(), 3U);
  for (const std::string_view text : {
           "table ip nat { set s { type inet_service; elements = { 80, 90 }; } chain web { return; }; chain out { type "
           "nat "
           "hook output priority -100; policy drop; tcp dport @s jump web; tcp dport { 22, 23 } accept comment \"a; "
           "b\"; "
           "}; }",
           "#!/usr/sbin/nft -f\nflush ruleset\ntable ip nat {\n  set s { type inet_service; elements = { 80,\n 90 } }\n"
           "  chain web { return; }\n  # what goes out\n  chain out {\n    type nat hook output priority -100\n"
           "    policy drop\n    tcp dport @s jump web; tcp dport { 22, 23 } accept comment \"a; b\"\n  }\n}\n",
       }) {
    EXPECT_EQ(rules_of_nft({std::string(text)}), expected) << text;
    const RulesOfTexts read_once = read_nft({std::string(text)});
    const LiveChain& out = read_once.live.front().chains.back();
    EXPECT_EQ(out.policy, Verdict::drop) << text;
    EXPECT_EQ(out.hook, (HookPoint{Hook::output, -100, ChainType::nat, {}})) << text;
  }
}

// nft lets nothing follow a verdict in a rule: two rules are in one line.
TEST(NftText, LeavesOpenRulesWhoseLineBreaksAreLost) {
  for (const std::string_view words :
       {"tcp dport 22 accept tcp dport 80 drop", "tcp dport 22 drop comment \"a\" tcp dport 80 drop",
        "tcp dport 22 redirect to :1 tcp dport 80 redirect to :2", "tcp dport 22 redirect tcp dport 80 redirect",
        "tcp dport 22 dnat ip to 10.0.0.1:80 counter packets 0 bytes 0 drop", "tcp dport 22 masquerade accept",
        "tcp dport 22 redirect to :1 tcp dport 80 meta mark set 1",
        "tcp dport 22 dnat ip to tcp dport map { 22 : 10.0.0.1 } drop", "tcp dport 22 jump d drop",
        "tcp dport vmap { 22 : accept } tcp dport 80 drop", "tcp dport 22 reject with tcp reset tcp dport 80 drop",
        "tcp dport 22 queue to 3 tcp dport 80 drop", "tcp dport 22 xyzzy map @m accept tcp dport 80 drop",
        "tcp dport 22 accept # handle 3 tcp dport 80 drop"})
    EXPECT_THAT(rule(words), ElementsAre(fmt::format("-A c {}", words)));
  for (const std::string_view words : {"tcp dport 22 counter packets 0 bytes 0 tcp dport 80 drop",
                                       "tcp dport 22 counter packets 0 bytes 0 xt target \"TPROXY\" drop"})
    EXPECT_THAT(rule(words, "ip nat"), ElementsAre(fmt::format("-A c {}", words)));
  for (const std::string_view words :
       {"accept comment \"a\"", "accept # of the web", "accept comment \"a\" # of the web"})
    EXPECT_THAT(rule(fmt::format("tcp dport 80 {}", words)), ElementsAre("-A c -p tcp --dport 80 -j ACCEPT")) << words;
  // An action may come before a condition, but where the rule's end is lost, too.
  EXPECT_THAT(rule("tcp dport 22 counter packets 0 bytes 0 ip daddr 10.0.0.1 drop"),
              ElementsAre("ipv4 -A c -p tcp --dport 22 -d 10.0.0.1/32 -j DROP"));
  EXPECT_THAT(
      rules_of_nft({"table inet t { chain c { comment \"a\" tcp dport 22 counter packets 0 bytes 0 tcp dport 80 "
                    "drop } chain d { tcp dport 80 drop } }\n"}),
      ElementsAre("inet t -A c tcp dport 22 counter packets 0 bytes 0 tcp dport 80 drop",
                  "inet t -A d -p tcp --dport 80 -j DROP"));
}

TEST(NftText, ReadsObjectsWhoseLineBreaksAreLost) {
  const RulesOfTexts dormant = read_nft({"table inet t { flags dormant chain c { drop } }\n"});
  EXPECT_TRUE(dormant.live.front().chains.front().dormant);
  const std::string set =
      "table inet t {{\n set s {{ type ipv4_addr flags {} = {{ 10.0.0.1, 10.1.0.0/16 }} }}\n chain c "
      "{{\n ip saddr @s drop\n }}\n}}\n";
  EXPECT_THAT(rules_of_nft({fmt::format(fmt::runtime(set), "interval comment \"dynamic\" elements")}),
              ElementsAre("inet t ipv4 -A c -s 10.0.0.1/32,10.1.0.0/16 -j DROP"));
  EXPECT_THAT(rules_of_nft({fmt::format(fmt::runtime(set), "interval,timeout timeout 1m elements")}),
              ElementsAre("inet t ipv4 -A c @s: packets and time change what it holds -j DROP"));
}

TEST(NftText, LeavesOpenWhatACutTextMayLack) {
  const std::string text = "table inet t {\n\tchain c {\n\t\tdrop\n\t}\n";
  const auto hooks = [](const std::string& listed) {
    std::size_t count = 0;
    const RulesOfTexts read_once = read_nft({listed});
    for (const LiveChain& chain : read_once.live.front().chains) {
      const bool open = chain.hook && std::holds_alternative<UnknownTarget>(chain.rules.front().rule.target);
      count += open ? 1U : 0U;
    }
    return count;
  };
  EXPECT_EQ(hooks(text), 5U);
  EXPECT_EQ(hooks(text + "}\n"), 0U);
  EXPECT_THAT(rules_of_nft({text}), ElementsAre("inet t -A c -j DROP"));
}

TEST(NftText, LeavesOpenATableWithoutItsFirstLine) {
  const std::string whole =
      "table inet t {\n\tset s {\n\t\ttype inet_service\n\t}\n\n\tchain c {\n\t\ttype filter hook input priority "
      "filter; policy accept;\n\t\ttcp dport 80 drop\n\t}\n\n\tchain d {\n\t\tdrop\n\t}\n}\n";
  const std::string next = "table ip another {\n\tchain e {\n\t\tdrop\n\t}\n}\n";
  const auto open_hooks = [](const std::string& text) {
    std::size_t count = 0;
    for (const Live& live : read_nft({text}).live) {
      count += static_cast<std::size_t>(std::ranges::count_if(live.chains, [](const LiveChain& chain) {
        return chain.hook && !chain.rules.empty() &&
               std::holds_alternative<UnknownTarget>(chain.rules.front().rule.target);
      }));
    }
    return count;
  };
  // Wherever the text begins.
  for (auto start = whole.find('\n') + 1; start < whole.size(); start = whole.find('\n', start) + 1) {
    const std::string text = whole.substr(start) + next;
    EXPECT_EQ(open_hooks(text), 5U) << text;
    EXPECT_THAT(notes_of_nft({text}), HasSubstr("this closes a table of nft of which the first line is missing"))
        << text;
  }
  EXPECT_EQ(open_hooks(whole + next), 0U);
  EXPECT_EQ(open_hooks("f() {\n  nft list ruleset\n}\n" + whole), 0U);
  const std::string save = "*nat\n:OUTPUT ACCEPT [0:0]\n-A OUTPUT -j RETURN\nCOMMIT\n";
  EXPECT_EQ(open_hooks(save + whole.substr(whole.find("\tchain"))), 5U);
  EXPECT_EQ(open_hooks(save + "}\n"), 0U);
  EXPECT_THAT(notes_of_nft({"}\n" + next, "}\n" + next}), Not(HasSubstr("[cut off] once more")));
}

TEST(NftText, RefusesJsonThatIsNotWhole) {
  const std::string text = document;
  EXPECT_THAT(refused(text.substr(0, 400)), HasSubstr("file1:2: the JSON of nft has no end: a part of it is missing"));
  EXPECT_THAT(refused("{\"nftables\": [}]"), HasSubstr("file1:1: the JSON of nft: "));
  EXPECT_THAT(refused("{\"nftables\": " + std::string(100, '[')), HasSubstr("the JSON nests deeper than 64 levels"));
}

TEST(NftText, IsReadBesideIptables) {
  const std::string save =
      "$ iptables-save\n*nat\n:OUTPUT ACCEPT [0:0]\n-A OUTPUT -p tcp -j REDIRECT --to-ports 1\nCOMMIT\n";
  const std::string nft =
      "$ nft list ruleset\ntable ip nat {\n\tchain OUTPUT {\n\t\ttype nat hook output priority -100; policy accept;\n"
      "\t\tmeta l4proto tcp counter packets 0 bytes 0 redirect to :1\n\t}\n}\ntable inet t {\n\tchain c "
      "{\n\t\tdrop\n\t}\n}\n";
  EXPECT_THAT(rules_of_nft({save + nft}),
              ElementsAre("inet t -A c -j DROP", "ip nat -A OUTPUT -p tcp -j REDIRECT --to-ports 1"));
  EXPECT_THAT(rules_of_nft({nft, save}), rules_of_nft({save + nft}));
  EXPECT_THAT(notes_of_nft({save + nft}), HasSubstr("ip nat: read of iptables, which prints more of it than nft"));
  // Other rules than nft's cannot be the same.
  for (const auto& [from, to] :
       {std::pair("--to-ports 1", "--to-ports 2"), {"COMMIT", "-A OUTPUT -j RETURN\nCOMMIT"}}) {
    std::string other = save;
    other.replace(other.find(from), std::string_view(from).size(), to);
    EXPECT_THAT(rules_of_nft({other + nft}), Contains("ip nat -A OUTPUT -p tcp -j REDIRECT --to-ports 1")) << other;
    EXPECT_THAT(rules_of_nft({other + nft}), Contains(::testing::StartsWith("nat -A OUTPUT"))) << other;
    EXPECT_THAT(notes_of_nft({other + nft}), HasSubstr("taken for rules of iptables-legacy"));
  }
  EXPECT_THAT(rules_of_nft({nft, "$ iptables-legacy-save\n" + save.substr(save.find('\n') + 1)}),
              ElementsAre("inet t -A c -j DROP", "ip nat -A OUTPUT -p tcp -j REDIRECT --to-ports 1",
                          "nat -A OUTPUT -p tcp -j REDIRECT --to-ports 1"));
}

}  // namespace
}  // namespace sidetrack
