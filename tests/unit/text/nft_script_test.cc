// SPDX-License-Identifier: GPL-2.0-or-later
// Commands of nft as logs and scripts have them. That the kernel takes them for the same, tests/kernel/answers shows.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <variant>

#include "model/scan.h"
#include "rule/iptables.h"
#include "text/read_texts.h"

namespace sidetrack {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

RulesOfTexts read_script(const std::string& text) {
  const RulesText named{"file", text};
  return read_texts({&named, 1}, true);
}

// "inet t -A c -j DROP"; "open" for each table of which any chain may be missing.
std::vector<std::string> rules_of_script(const std::string& text) {
  std::vector<std::string> all;
  for (const Live& live : read_script(text).live) {
    for (const LiveChain& chain : live.chains) {
      if (chain.name == "output [cut off]") all.push_back(fmt::format("{} open", chain.table_name));
      if (chain.name.ends_with(" [cut off]")) continue;
      for (const LiveRule& rule : chain.rules)
        all.push_back(fmt::format("{} {}", chain.table_name, iptables_words(rule.rule)));
    }
  }
  return all;
}

// Of the rules in the chain c of the table inet t, which the text makes.
std::vector<std::string> rules_after(const std::string& commands) {
  std::vector<std::string> all = rules_of_script(
      "add table inet t\nadd chain inet t c { type filter hook output priority 0 ; }\n"
      "add rule inet t c tcp dport 1 drop\nadd rule inet t c tcp dport 2 drop\n" +
      commands + "\n");
  for (std::string& each : all) {
    if (each.starts_with("inet t -A c ")) each.erase(0, 12);
  }
  return all;
}

std::string notes_of_script(const std::string& text) {
  return fmt::format("{}", fmt::join(read_script(text).notes, "\n"));
}

constexpr const char* of_one = "-p tcp --dport 1 -j DROP";
constexpr const char* of_two = "-p tcp --dport 2 -j DROP";

constexpr const char* log_of_istio =
    "2026-01-02T03:04:05.123456Z\tinfo\tnftables rules programmed in table [istio-proxy-nat]:\n"
    "add table inet istio-proxy-nat\n"
    "flush table inet istio-proxy-nat\n"
    "add chain inet istio-proxy-nat output { type nat hook output priority -100 ; }\n"
    "add chain inet istio-proxy-nat istio-redirect\n"
    "add chain inet istio-proxy-nat istio-output\n"
    "add rule inet istio-proxy-nat istio-redirect meta l4proto tcp redirect to :15001\n"
    "add rule inet istio-proxy-nat output jump istio-output\n"
    "add rule inet istio-proxy-nat istio-output skuid 1337 return\n"
    "add rule inet istio-proxy-nat istio-output jump istio-redirect\n"
    "insert rule inet istio-proxy-nat istio-output index 1 tcp dport != { 53, 15008 } return\n"
    " \n2026-01-02T03:04:05.223456Z\tinfo\tdone\n";

TEST(NftScript, ReadsTheLogOfIstio) {
  const std::vector<std::string> expected = {
      "inet istio-proxy-nat -A OUTPUT -j istio-output",
      "inet istio-proxy-nat -A istio-output -m owner --uid-owner 1337 -j RETURN",
      "inet istio-proxy-nat -A istio-output -p tcp -m multiport ! --dports 53,15008 -j RETURN",
      "inet istio-proxy-nat -A istio-output -j istio-redirect",
      "inet istio-proxy-nat -A istio-redirect -p tcp -j REDIRECT --to-ports 15001"};
  EXPECT_THAT(rules_of_script(log_of_istio), ::testing::UnorderedElementsAreArray(expected));
  EXPECT_THAT(notes_of_script(log_of_istio), HasSubstr("the table inet istio-proxy-nat is assumed to be empty"));
  // Once more, as after a restart: nft 1.0.6 takes the index for one of the rules that are flushed.
  EXPECT_THAT(rules_of_script(std::string(log_of_istio) + log_of_istio),
              Contains("inet istio-proxy-nat -A istio-output insert rule inet istio-proxy-nat istio-output index 1 tcp "
                       "dport != { 53, 15008 } return"));
  const std::string without_index = std::string(log_of_istio).substr(0, std::string_view(log_of_istio).find("insert"));
  EXPECT_EQ(rules_of_script(without_index + without_index), rules_of_script(without_index));
  EXPECT_THAT(notes_of_script(without_index), Not(HasSubstr("assumed to be empty")));
  // With the time of kubectl logs --timestamps, or a pod's name, before each line.
  for (const std::string_view prefix : {"2026-01-02T03:04:06.123Z ", "web-0 istio-init "}) {
    std::string prefixed;
    std::string_view rest = log_of_istio;
    while (!rest.empty()) {
      const auto end = rest.find('\n');
      prefixed += fmt::format("{}{}\n", prefix, rest.substr(0, end));
      rest.remove_prefix(end + 1);
    }
    EXPECT_EQ(rules_of_script(prefixed), rules_of_script(log_of_istio)) << prefixed;
  }
}

TEST(NftScript, ReadsCommandsOfAShell) {
  const std::vector<std::string> expected = {"ip web -A c -i eth0 -p tcp -m multiport --dports 80,443 -j DROP",
                                             "ip web -A c -j ACCEPT"};
  for (
      const std::string_view text : {
          "nft add table web\nnft add chain ip web c { type filter hook input priority 0\\; policy drop\\; }\n"
          "/ # nft add rule web c iifname eth0 tcp dport {80, 443} drop\nnft add rule web c accept\n",
          "nft 'add table web; add chain web c { type filter hook input priority 0; policy drop; }'\n"
          "/usr/sbin/nft -a \"add rule ip web c iifname \\\"eth0\\\" tcp dport { 80, 443 } drop\" && nft add rule web "
          "c "
          "accept 2>/dev/null || true\n",
          "nft add table web && nft add chain web c '{ type filter hook input priority 0 ; policy drop ; }'; nft \"add "
          "rule web c accept; insert rule web c iifname eth0 tcp dport {80,443} drop\"\n",
          "nft add table ip web\nnft add chain ip web c \\{ type filter hook input priority filter \\; policy drop \\; "
          "\\}\nnft add ip web c iifname eth0 tcp dport { 80, 443 } \\\n  drop\n`nft add web c accept`\n",
      }) {
    EXPECT_EQ(rules_of_script(std::string(text)), expected) << text;
    const LiveChain chain = read_script(std::string(text)).live.front().chains.front();
    EXPECT_EQ(chain.hook, (HookPoint{Hook::input, 0, ChainType::filter, {}})) << text;
    EXPECT_EQ(chain.policy, Verdict::drop) << text;
  }
}

TEST(NftScript, ReadsFilesOfNft) {
  EXPECT_THAT(rules_of_script("#!/usr/sbin/nft -f\nflush ruleset\ntable inet t\n"
                              "add set inet t s { type ipv4_addr; flags interval; elements = { 10.0.0.0/8, # ours\n"
                              "  192.0.2.1 }\n}\n"
                              "add map inet t m { type inet_service : verdict\n elements = { 22 : accept }\n}\n"
                              "add chain inet t c {\n  type filter hook output priority filter - 5\n  policy drop\n}\n"
                              "add element inet t s { 198.51.100.0/24 }; add element inet t m { 80 : drop }\n"
                              "add rule inet t c ip daddr @s accept comment \"a; b\" # what is near\n"
                              "# add rule inet t c drop\n"
                              "add rule inet t c tcp dport vmap @m\n"),
              ElementsAre("inet t -A c -d 10.0.0.0/8,192.0.2.1/32,198.51.100.0/24 -j ACCEPT",
                          "inet t -A c -p tcp --dport 22 -j ACCEPT", "inet t -A c -p tcp --dport 80 -j DROP"));
}

// nft lists the hook of a base chain each time.
TEST(NftScript, JoinsBlocksOfATable) {
  const std::string first =
      "table inet t {\n chain c {\n  type filter hook input priority 0;\n  tcp dport 80 drop\n }\n}\n";
  const std::string added = "table inet t {\n chain c {\n  tcp dport 81 drop\n }\n}\n";
  EXPECT_THAT(rules_of_script(first + added),
              ElementsAre("inet t -A c -p tcp --dport 80 -j DROP", "inet t -A c -p tcp --dport 81 -j DROP"));
  EXPECT_EQ(notes_of_script(first + added).find("once more"), std::string::npos);
  const LiveChain chain = read_script(first + added).live.front().chains.front();
  EXPECT_EQ(chain.hook, (HookPoint{Hook::input, 0, ChainType::filter, {}}));
  EXPECT_THAT(rules_of_script(first + first), ElementsAre("inet t -A c -p tcp --dport 80 -j DROP"));
}

TEST(NftScript, AsksForTcpWhereItResets) {
  const std::string start = "table inet t {\n chain c {\n  type filter hook input priority 0;\n  ";
  EXPECT_THAT(rules_of_script(start + "meta mark 5 reject with tcp reset\n }\n}\n"),
              ElementsAre("inet t -A c -m mark --mark 5 -p tcp reject with tcp reset"));
  EXPECT_THAT(rules_of_script(start + "tcp dport 010 reject with tcp reset\n }\n}\n"),
              ElementsAre("inet t -A c -p tcp --dport 8 reject with tcp reset"));
}

TEST(NftScript, PutsRulesWhereTheyAreInserted) {
  const char* more = "-p tcp --dport 3 -j DROP";
  EXPECT_THAT(rules_after("add rule inet t c tcp dport 3 drop"), ElementsAre(of_one, of_two, more));
  EXPECT_THAT(rules_after("insert rule inet t c tcp dport 3 drop"), ElementsAre(more, of_one, of_two));
  EXPECT_THAT(rules_after("insert rule inet t c index 1 tcp dport 3 drop"), ElementsAre(of_one, more, of_two));
  EXPECT_THAT(rules_after("add rule inet t c index 0 tcp dport 3 drop"), ElementsAre(of_one, more, of_two));
  EXPECT_THAT(rules_after("replace rule inet t c index 0 tcp dport 3 drop"), ElementsAre(more, of_two));
  EXPECT_THAT(rules_after("delete rule inet t c index 0"), ElementsAre(of_two));
  EXPECT_THAT(rules_after("flush chain inet t c"), IsEmpty());
  EXPECT_THAT(rules_after("flush table inet t"), IsEmpty());
  EXPECT_THAT(rules_after("delete chain inet t c"), IsEmpty());
  EXPECT_THAT(rules_after("delete table inet t"), IsEmpty());
  EXPECT_THAT(rules_after("flush ruleset"), IsEmpty());
  EXPECT_THAT(rules_after("flush ruleset ip"), ElementsAre(of_one, of_two));
}

TEST(NftScript, LeavesOpenWhatMayHaveFailed) {
  EXPECT_THAT(rules_after("Error: No such file or directory\nadd rule inet t c accept\n                ^"),
              Contains("inet t open"));
}

// Handles are not known, nor what other texts would have.
TEST(NftScript, LeavesOpenWhatTheTextDoesNotTell) {
  for (const std::string command : {"delete rule inet t c handle 4", "insert rule inet t c position 4 accept",
                                    "add rule inet t c handle 4 accept", "replace rule inet t c handle 4 accept",
                                    "insert rule inet t c index 2 accept", "add rule inet t c xyzzy accept to"})
    EXPECT_THAT(rules_after(command),
                Contains(command.find("xyzzy") == std::string::npos ? command : "xyzzy accept to"))
        << command;
  EXPECT_THAT(rules_after("delete rule inet t c handle 4\nadd rule inet t c index 0 accept"),
              ElementsAre("add rule inet t c index 0 accept", "delete rule inet t c handle 4", of_one, of_two));
  for (const std::string command :
       {"add chain inet t d { type filter hook input priority $first ; }", "rename chain inet t c d",
        "delete chain inet t handle 4", "flush chain inet t d", "add rule inet t $chain accept", "add rule inet t c",
        "add chain inet t d { type filter hook input priority 0 ;", "add chain inet t d to the others"})
    EXPECT_THAT(rules_after(command), Contains("inet t open")) << command;
  EXPECT_THAT(rules_after("delete table inet handle 4"), Contains("inet [not known] open"));
  EXPECT_THAT(rules_after("add rule ip $table c accept"), Contains("inet [not known] open"));
  const std::string of_another = "nft add rule inet t d tcp dport 80 accept\n";
  EXPECT_THAT(rules_of_script(of_another), ElementsAre("inet t open", "inet t -A d [rules that the text does not show]",
                                                       "inet t -A d -p tcp --dport 80 -j ACCEPT"));
  EXPECT_THAT(notes_of_script(of_another),
              HasSubstr("file:1: commands of nft change what the text does not show of the table inet t"));
  EXPECT_THAT(rules_after("add rule inet t c iifname $lan accept"), Contains("iifname $lan -j ACCEPT"));
}

TEST(NftScript, LeavesOpenElementsThatAreDeleted) {
  const std::string set = "add set inet t s { type inet_service ; }\nadd element inet t s { 80, 90 }\n";
  const std::string rule = "\nadd rule inet t c tcp sport @s accept";
  EXPECT_THAT(rules_after(set + rule), Contains("-p tcp -m multiport --sports 80,90 -j ACCEPT"));
  for (const std::string command : {"delete element inet t s { 80 }", "add element inet t s { $port }",
                                    "delete set inet t s", "add rule inet t c add @s { tcp sport }"})
    EXPECT_THAT(rules_after(set + command + rule),
                Contains(::testing::AnyOf("-p tcp tcp sport @s -j ACCEPT",
                                          "-p tcp @s: packets and time change what it holds -j ACCEPT")))
        << command;
  EXPECT_THAT(
      notes_of_script("add table inet t\n" + set + "flush set inet t s\nadd chain inet t c\n" + rule.substr(1) + "\n"),
      HasSubstr("taken as empty: the set inet t s"));
}

TEST(NftScript, KnowsCommandsThatAreCutOffOrWrapped) {
  EXPECT_THAT(rules_of_script("add table inet t\nadd chain inet t c\nadd rule inet t c tcp dport 80"),
              ElementsAre("inet t -A c tcp dport 80 [cut off]"));
  EXPECT_THAT(rules_of_script("add table inet t\nadd chain inet t c\nadd rule inet t c tcp dport 80 drop"),
              ElementsAre("inet t -A c -p tcp --dport 80 -j DROP"));
  for (const std::string_view wrapped : {"tcp dport\n3 drop", "tcp dport 3\ndrop", "tcp dport {\n3 } drop"})
    EXPECT_THAT(rules_after(fmt::format("add rule inet t c {}", wrapped)),
                ElementsAre(of_one, of_two, "-p tcp --dport 3 -j DROP"));
  EXPECT_THAT(rules_after("add rule inet t c meta mark set 1\n2026-01-02 done"),
              ElementsAre(of_one, of_two, "-j MARK --set-mark 1"));
}

TEST(NftScript, TellsCommandsFromProse) {
  const std::string listing = "table inet t {\n\tchain c {\n\t\tdrop\n\t}\n}\n";
  for (const std::string_view prose :
       {"We add table and chain by hand.\n", "nft add rule command fails with an error\n",
        "add rule to allow the web\n", "then flush ruleset\n", "# nft add rule inet t c accept\n",
        "nft add chain is not enough\n"})
    EXPECT_THAT(rules_of_script(std::string(prose) + listing), ElementsAre("inet t -A c -j DROP")) << prose;
}

TEST(NftScript, ChangesTablesThatAreListed) {
  const std::string listing =
      "table inet t {\n\tchain c {\n\t\ttype filter hook output priority filter; policy accept;\n\t\tdrop\n\t}\n}\n";
  EXPECT_THAT(rules_of_script(listing + "$ nft insert rule inet t c accept\n"),
              ElementsAre("inet t -A c -j ACCEPT", "inet t -A c -j DROP"));
  EXPECT_THAT(rules_of_script("add table inet t; delete table inet t; " + listing), ElementsAre("inet t -A c -j DROP"));
  EXPECT_THAT(rules_of_script("flush table inet t; " + listing), ElementsAre("inet t -A c -j DROP"));
  // What nft lists after commands is what there is; without its prompt the lines may be of a script, too.
  const std::string commands =
      "nft add table inet t\nnft add chain inet t c\nnft add rule inet t c accept\nnft add "
      "table ip u\nnft add chain ip u c\nnft add rule ip u c accept\n";
  EXPECT_THAT(rules_of_script(commands + "$ nft list ruleset\n" + listing), ElementsAre("inet t -A c -j DROP"));
  EXPECT_THAT(rules_of_script(commands + "$ nft list table inet t\n" + listing),
              ElementsAre("inet t -A c -j DROP", "ip u -A c -j ACCEPT"));
  EXPECT_THAT(rules_of_script(commands + listing), Contains("inet t open"));
  EXPECT_THAT(notes_of_script(commands + listing), HasSubstr("file:7: the table inet t after commands that change it"));
  EXPECT_THAT(rules_of_script("add table inet t { comment \"a\" ; }\nadd chain inet t c\nadd rule inet t c drop\n"
                              "add table inet t { comment \"a\" ; }\n"),
              ElementsAre("inet t -A c -j DROP"));
}

TEST(NftScript, LeavesOpenWhatIsOmitted) {
  const std::string made = "add table inet t\nadd chain inet t c { type filter hook output priority 0 ; }\n";
  for (const std::string gap : {"...", "# ...", "-- snip --"}) {
    EXPECT_THAT(rules_of_script(made + gap + "\nadd rule inet t c drop\n"), Contains("inet [cut off] open")) << gap;
    EXPECT_THAT(notes_of_script(made + gap + "\nadd rule inet t c drop\n"),
                HasSubstr("file:3: lines are omitted here"));
    EXPECT_THAT(rules_of_script("table inet t {\n}\n" + gap + "\n"), Contains("inet [cut off] open")) << gap;
    // The end of the chain may be among them, and the first line of a base chain or of another table.
    const std::string within =
        "table ip t {\n\tchain c {\n\t\tip daddr 1.1.1.1 accept\n" + gap + "\n\t\tdrop\n\t}\n}\n";
    EXPECT_THAT(rules_of_script(within),
                AllOf(Contains("inet [cut off] open"), Contains("ip t open"), Contains("ip t -A c -j DROP")))
        << gap;
    EXPECT_THAT(notes_of_script(within), HasSubstr("file:4: lines are omitted here"));
    std::string in_log;
    for (const std::string_view line : split_lines(within)) in_log += fmt::format("2026-01-02T03:04:05Z {}\n", line);
    EXPECT_THAT(rules_of_script(in_log), AllOf(Contains("inet [cut off] open"), Contains("ip t open"))) << in_log;
    EXPECT_THAT(rules_of_script("table ip t {\n\tset s {\n\t\ttype ipv4_addr\n" + gap + "\n\t}\n}\n"),
                Contains("ip t open"))
        << gap;
  }
  EXPECT_THAT(rules_of_script("table ip t {\n\tchain c {\n\t}\n}\ntable ip u"), Contains("ip u open")) << "cut off";
  EXPECT_THAT(notes_of_script(made), HasSubstr("before these commands of nft, and they to be whole"));
  EXPECT_THAT(notes_of_script(made + "echo 'add rule inet t c drop' | nft -f -\n"), HasSubstr("loads is not read"));
}

TEST(NftScript, SaysWhatTheTextTellsOfFailuresAndLacks) {
  const std::string made = "add table inet t\nadd chain inet t c { type filter hook output priority 0 ; }\n";
  EXPECT_THAT(
      notes_of_script(made + "add rule inet t c drop\nerror could not run nftables command: exit status 1\n"),
      HasSubstr("file:4: 'error could not run nftables command: exit status 1': the rules are taken to be there"));
  EXPECT_THAT(notes_of_script("table inet t {\n\tchain c {\n\t}\n}\n"), HasSubstr("no rule is in the tables of nft"));
  EXPECT_THAT(notes_of_script(made + "add rule inet t c drop\n"), Not(HasSubstr("no rule is in")));
  EXPECT_THAT(notes_of_script("*nat\n:OUTPUT ACCEPT [0:0]\nCOMMIT\nprintf 'add table ip z' | nft -f -\n"),
              HasSubstr("loads is not read"));
}

// At any blank, as a mail wraps it.
TEST(NftScript, JoinsWhatAMailHasWrapped) {
  const std::string made = "add table inet t\nadd chain inet t c { type nat hook output priority 0 ; }\n";
  const std::string rule = "add rule inet t c meta l4proto tcp tcp dport 80 counter redirect to :15001";
  const std::vector<std::string> whole = rules_of_script(made + rule + "\nThat is all, and nothing helps.\n");
  ASSERT_THAT(whole, ElementsAre("inet t -A c -p tcp --dport 80 -j REDIRECT --to-ports 15001"));
  for (std::size_t at = rule.find(" c ") + 2; at != std::string::npos; at = rule.find(' ', at + 1)) {
    std::string wrapped = rule;
    wrapped[at] = '\n';
    EXPECT_EQ(rules_of_script(made + wrapped + "\nThat is all, and nothing helps.\n"), whole) << wrapped;
    const auto more = rule.find(' ', at + 1);
    if (more == std::string::npos || rule.substr(more) == " :15001") continue;
    wrapped[more] = '\n';
    EXPECT_EQ(rules_of_script(made + wrapped + "\n\nThat is all, and nothing helps.\n"), whole) << wrapped;
  }
}

// After `flush ruleset` no block lists what is there: each adds to what those before made.
TEST(NftScript, JoinsTheBlocksOfATable) {
  const std::string head = "\ttype filter hook output priority 0; policy accept;\n";
  const std::string text = "flush ruleset\ntable inet t {\n chain c {\n" + head + "tcp dport 1 drop\n }\n}\n" +
                           "table inet t {\n chain d {\n return\n }\n}\n" + "table inet t {\n chain c {\n" + head +
                           "tcp dport 2 drop\n }\n}\n";
  EXPECT_THAT(rules_of_script(text), ElementsAre("inet t -A c -p tcp --dport 1 -j DROP",
                                                 "inet t -A c -p tcp --dport 2 -j DROP", "inet t -A d -j RETURN"));
}

// A rule of nft is none of iptables in its tables, either: without a socket `skuid != 1` does not hold.
TEST(NftScript, ReadsRulesInTablesOfIptablesAsNft) {
  EXPECT_THAT(rules_of_script("nft add table nat\nnft add chain nat out { type nat hook output priority -100 \\; }\n"
                              "nft add rule nat out skuid != 1337 tcp dport 80 counter redirect to :15001\n"),
              ElementsAre("ip nat -A out -p tcp meta skuid != 1337 --dport 80 -j REDIRECT --to-ports 15001"));
  const std::string both =
      "*nat\n:OUTPUT ACCEPT [0:0]\n-A OUTPUT -p tcp -j RETURN\nCOMMIT\n"
      "nft add rule ip nat OUTPUT tcp dport 80 accept; iptables -t nat -A OUTPUT -j RETURN\n";
  EXPECT_THAT(rules_of_script(both), Contains("ip nat open"));
  EXPECT_THAT(rules_of_script(both), Contains("ip nat -A OUTPUT -j RETURN"));
}

}  // namespace
}  // namespace sidetrack
