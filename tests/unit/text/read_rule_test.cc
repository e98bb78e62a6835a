// SPDX-License-Identifier: GPL-2.0-or-later
// Rules that are read from the words of iptables.
#include "text/read_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "model/error.h"
#include "rule/iptables.h"
#include "text/refused_words.h"

namespace sidetrack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What is not understood of it: of the matches, then of the target.
std::vector<std::string> not_understood(const std::string& words) {
  const Rule rule = read_rule(words);
  std::vector<std::string> all;
  for (const Match& one : rule.matches) {
    if (const auto* unknown = std::get_if<UnknownMatch>(&one)) all.push_back(unknown->words);
  }
  if (const auto* unknown = std::get_if<UnknownTarget>(&rule.target)) all.push_back(unknown->words);
  return all;
}

TEST(ReadRule, IsAsItsWordsAre) {
  for (const std::string words : {
           "-A ISTIO_OUTPUT -s 127.0.0.6/32 -o lo -j RETURN",
           "-A C -i eth0 -j ACCEPT",
           "-A C ! -i eth+ -j DROP",
           "-A C ! -s 10.0.0.0/8 ! -d fd00::/8 -j ACCEPT",
           "-A C -p icmp -j ACCEPT",
           "-A C -p tcp -j ACCEPT",
           "-A C -p udp -j ACCEPT",
           "-A C ! -p tcp -j ACCEPT",
           "-A C -p tcp --dport 80 -j REDIRECT --to-ports 15006",
           "-A C -p tcp --sport 1024:65535 -j REDIRECT --to-ports 65535",
           "-A C -p tcp ! --dport 15008 -j RETURN",
           "-A C -p tcp -m multiport --dports 80,443,8000:8080 -j RETURN",
           "-A C -p tcp -m multiport --sports 80,443 -j RETURN",
           "-A C -m owner --uid-owner 1337 -j RETURN",
           "-A C -m owner ! --gid-owner 1337 -j RETURN",
           "-A C -m owner --uid-owner 1000-1999 -j RETURN",
           "-A C -m cgroup --path kubepods/a -j RETURN",
           "-A C -m cgroup ! --path \"with space\" -j RETURN",
           "-A C -m owner --socket-exists -j RETURN",
           "-A C -j CONNMARK --save-mark --nfmask 0xff0000 --ctmask 0xff0000",
           "-A C -j CONNMARK --restore-mark --nfmask 0xff --ctmask 0x80",
           "-A C -p tcp -m multiport ! --ports 80,8000:8080 -j DROP",
           "-A C -m conntrack --ctstate INVALID -j DROP",
           "-A C -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP",
           "-A C -m conntrack --ctstate NEW -j ACCEPT",
           "-A C -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
           "-A C -m conntrack ! --ctstate UNTRACKED -j ACCEPT",
           "-A C -m conntrack --ctdir REPLY -j ACCEPT",
           "-A C -m conntrack --ctdir ORIGINAL -j ACCEPT",
           "-A C -m mark --mark 1337 -j ACCEPT",
           "-A C -m mark ! --mark 0x539/0xfff -j ACCEPT",
           "-A C -m connmark --mark 0x111/0xfff -j ACCEPT",
           "-A C -j TPROXY --tproxy-mark 1337/0xffffffff --on-port 15006",
           "-A C -j MARK --set-mark 1337",
           "-A C -j MARK --set-xmark 0x539/0xfff",
           "-A C -j CONNMARK --set-xmark 0x111/0xfff",
           "-A C -j CONNMARK --save-mark",
           "-A C -j CONNMARK --restore-mark",
           "-A C -j CT --zone 1",
           "-A C -j CT --notrack",
           "-A C -p tcp -j REDIRECT --to-ports 15001-15002",
           "-A C -p tcp -j REDIRECT --to-ports 1 --random",
           "-A C -j SNAT --to-source 10.0.0.1",
           "-A C -p tcp -j SNAT --to-source 10.0.0.1-10.0.0.9:80-90 --random-fully --persistent",
           "-A C -p tcp -j DNAT --to-destination :80",
           "-A C -p tcp -j DNAT --to-destination [fd00::1]:80",
           "-A C -j DNAT --to-destination fd00::1",
           "-A C -j MASQUERADE",
           "-A C -p tcp -j MASQUERADE --to-ports 1024-2048 --random",
           "-A C -j REJECT --reject-with tcp-reset",
           "-A C -j TOS --set-tos 0x10/0x3f",
           "-A C -j LOG --log-prefix x",
           "-A C -j NFLOG --nflog-group 1",
           "-A C -j TEE --gateway 10.0.0.1",
           "-A C -j ISTIO_REDIRECT",
           "-A C -g ELSEWHERE",
           "-A C -p tcp",
           "-A C",
           "-I C 2 -p tcp -j ACCEPT",
       }) {
    EXPECT_EQ(iptables_words(read_rule(words)), words);
    EXPECT_THAT(not_understood(words), IsEmpty()) << words;
  }
}

// A match that is not understood goes to the next module.
TEST(ReadRule, SaysWhatIsNotUnderstood) {
  // With the module that it is of.
  for (const auto& [module, match] : std::vector<std::pair<std::string, std::string>>{
           {"", "-m addrtype --dst-type LATER"},
           {"", "-p 256"},
           {"", "-p nonsense"},
           {"", "--dport 65536"},
           {"", "--sport 9:8"},
           {"", "-s 10.0.0.9-10.0.0.8"},
           {"", "-s 10.0.0.0-fd00::"},
           {"", "-d 10.0.0.0/8,fd00::/8"},
           {"", "-s host"},
           {"", "--path /a"},
           {"", "--mark 1"},
           {"", "!"},
           {"", "-p"},
           {"", "-m"},
           {"-m multiport ", "--dports 80,"},
           {"-m owner ", "--uid-owner 20-10"},
           {"-m owner ", "--uid-owner 10-"},
           {"-m owner ", "--gid-owner mesh"},
           {"-m conntrack ", "--ctstate NEW,LATER"},
           {"-m conntrack ", "--ctdir BACK"},
           {"-m conntrack ", "! --ctdir REPLY"},
           {"-m mark ", "--mark 1/"},
           {"-m mark ", "--mark x"},
           {"-m comment ", "! --comment a"},
       }) {
    EXPECT_THAT(not_understood("-A C -i eth0 " + module + match + " -j DROP"), ElementsAre(module + match));
  }
  EXPECT_THAT(not_understood("-A C -m statistic --mode nth --every 2 -m owner --uid-owner 1 -m tos --tos 1 -j DROP"),
              ElementsAre("-m statistic --mode nth --every 2", "-m tos --tos 1"));
  for (const std::string target : {"-j",
                                   "-j REDIRECT --to-ports 70000",
                                   "-j REDIRECT --to-ports",
                                   "-j REDIRECT --to-ports 9-8",
                                   "-j DNAT --to-source 10.0.0.1",
                                   "-j DNAT --to-destination",
                                   "-j DNAT --random",
                                   "-j DNAT --to-destination [fd00::1",
                                   "-j SNAT --to-source fd00::2-fd00::1",
                                   "-j SNAT --to-source 10.0.0.1:x",
                                   "-j TPROXY --on-port 1 --on-ip 10.0.0.1 --tproxy-mark 1",
                                   "-j TPROXY --on-port 1",

                                   "-j TPROXY --tproxy-mark x --on-port 1",
                                   "-j TPROXY --tproxy-mark 1 --on-port x",
                                   "-j MARK --set-mark x",
                                   "-j MARK --or-mark x",
                                   "-j MARK --not-mark 1",
                                   "-j CONNMARK --set-mark x",
                                   "-j MARK --save-mark",
                                   "-j CT --zone 65536",
                                   "-j CT --helper ftp",
                                   "-j ACCEPT --always"}) {
    EXPECT_THAT(not_understood("-A C -p tcp " + target), ElementsAre(target));
  }
}

// In the words of iptables-save.
TEST(ReadRule, TakesTheShortFormsOfMark) {
  const auto target = [](const std::string& words) { return iptables_words(read_rule("-A C " + words).target); };
  EXPECT_EQ(target("-j MARK --xor-mark 0x5"), "-j MARK --set-xmark 0x5/0x0");
  EXPECT_EQ(target("-j MARK --or-mark 5"), "-j MARK --set-xmark 0x5/0x5");
  EXPECT_EQ(target("-j CONNMARK --and-mark 5"), "-j CONNMARK --set-xmark 0x0/0xfffffffa");
}

// Where there is no connection the state alone decides about all that one `-m conntrack` asks.
TEST(ReadRule, KeepsMatchesOfConntrackApart) {
  for (const std::string words :
       {"-m conntrack --ctstate NEW --ctdir ORIGINAL", "-m conntrack --ctdir ORIGINAL -m conntrack --ctstate INVALID",
        "-m conntrack --ctstate INVALID -m conntrack --ctdir ORIGINAL",
        "-m conntrack ! --ctstate NEW -m conntrack --ctdir ORIGINAL",
        "-m conntrack --ctstate INVALID --ctdir ORIGINAL -m conntrack --ctdir ORIGINAL"})
    EXPECT_EQ(iptables_words(read_rule("-A OUTPUT " + words + " -j DROP")), "-A OUTPUT " + words + " -j DROP");
}

TEST(ReadRule, TakesAnyProtocol) {
  EXPECT_EQ(read_rule("-A C -p all -d 10.0.0.1/32 -j DROP"), read_rule("-A C -d 10.0.0.1/32 -j DROP"));
  EXPECT_EQ(read_rule("-A C -p 0 -j DROP"), read_rule("-A C -j DROP"));
}

// --suppl-groups changes what --gid-owner says.
TEST(ReadRule, KnowsNothingOfAnOwnerThatIsMoreThanThat) {
  const Rule rule = read_rule("-A OUTPUT -p tcp -m owner --gid-owner 7 --suppl-groups -m mark --mark 0x1 -j DROP");
  ASSERT_EQ(rule.matches.size(), 3U);
  EXPECT_EQ(rule.matches[1], Match(UnknownMatch{"-m owner --gid-owner 7 --suppl-groups"}));
}

TEST(ReadRule, OfAListOrARangeHasEachValue) {
  const Rule rule = read_rule("-A C -s 10.0.0.1-10.0.0.9,10.1.0.0/16 -j ACCEPT");
  const auto& match = std::get<AddressMatch>(rule.matches.at(0));
  EXPECT_EQ(match.end, End::source);
  EXPECT_THAT(match.ranges, ElementsAre(AddressRange{*Address::parse("10.0.0.1"), *Address::parse("10.0.0.9")},
                                        *AddressRange::parse("10.1.0.0/16")));
  const AddressRange single = AddressRange::single(*Address::parse("10.0.0.1"));
  EXPECT_THAT(std::get<AddressMatch>(read_rule("-A C -s 10.0.0.1-10.0.0.1").matches.at(0)).ranges, ElementsAre(single));
  EXPECT_THAT(read_rule("-A C -s 10.0.0.9-10.0.0.1").matches.at(0), ::testing::VariantWith<UnknownMatch>(::testing::_));
  EXPECT_EQ(std::get<ProtocolMatch>(read_rule("-A C -p 47").matches.at(0)).protocol, static_cast<Protocol>(47));
  EXPECT_EQ(std::get<ProtocolMatch>(read_rule("-A C -p ipv6-icmp").matches.at(0)).protocol, Protocol::icmpv6);
}

// Whether two rules are equal is asked of more than their words: of what the words do not say there is nothing.
TEST(ReadRule, HasWhatTheWordsSayAndNoMore) {
  const auto match = [](const char* words) { return read_rule(std::string("-A C ") + words).matches.at(0); };
  EXPECT_EQ(match("-m cgroup --path /a"), Match(CgroupMatch{"a", 0, false}));
  EXPECT_EQ(match("-m mark --mark 5"), Match(MarkMatch{5, 0xffffffff, false}));
  EXPECT_EQ(match("-m connmark ! --mark 5/6"), Match(ConnmarkMatch{5, 6, true}));
  EXPECT_EQ(match("-m conntrack --ctdir ORIGINAL"), Match(ConntrackDirectionMatch{false}));
  EXPECT_EQ(match("-m conntrack --ctdir REPLY"), Match(ConntrackDirectionMatch{true}));
  EXPECT_EQ(match("-m conntrack ! --ctrepldst 10.0.0.0/8"),
            Match(ConnectionMatch{
                ConnectionMatch::Of::address, true, End::destination, true, {*AddressRange::parse("10.0.0.0/8")}, {}}));
  EXPECT_EQ(match("-m conntrack --ctorigsrcport 80:90"),
            Match(ConnectionMatch{ConnectionMatch::Of::port, false, End::source, false, {}, {{80, 90}}}));
  EXPECT_EQ(match("-m conntrack --ctproto tcp"),
            Match(ConnectionMatch{ConnectionMatch::Of::protocol, false, End::source, false, {}, {}, 6}));
  EXPECT_EQ(match("-m conntrack --ctstatus SEEN_REPLY,CONFIRMED"),
            Match(ConnectionMatch{ConnectionMatch::Of::status, false, End::source, false, {}, {}, 10}));
  // A packet without a connection meets the state alone: what else the same module asks is not asked then.
  EXPECT_EQ(match("-m conntrack --ctstate INVALID --ctorigdst 10.0.0.1 -j DROP"),
            Match(UnknownMatch{"-m conntrack --ctstate INVALID --ctorigdst 10.0.0.1"}));
  EXPECT_EQ(read_rule("-A C -m conntrack --ctstate NEW --ctorigdst 10.0.0.1 -j DROP").matches.size(), 2U);
  EXPECT_EQ(read_rule("-A C -m conntrack --ctstate INVALID -m conntrack --ctorigdst 10.0.0.1").matches.size(), 2U);
  const auto nat = [](const char* words) { return std::get<Nat>(read_rule(std::string("-A C -j ") + words).target); };
  EXPECT_EQ(nat("NETMAP --to 10.0.0.0/8").to, Nat::To::network);
  EXPECT_EQ(nat("DNAT --to-destination 10.0.0.1:8000-8009/80").base, 80);
  EXPECT_TRUE(nat("REDIRECT --to-ports 80-81 --random").random);
  const Rule rule = read_rule("-A C -j MARK --set-mark 5/6");
  EXPECT_EQ(rule.target, Target(SetMark{5, 7}));
  EXPECT_EQ(rule.chain, "C");
  EXPECT_EQ(rule.insert_at, std::nullopt);
  EXPECT_EQ(rule.origin.rule, MeshRule{});
  EXPECT_EQ(read_rule("-A C -j CONNMARK --set-xmark 5/6").target, Target(SetConnmark{5, 6}));
  EXPECT_EQ(read_rule("-A C -j MARK --set-xmark 5/6").target, Target(SetMark{5, 6}));
  EXPECT_EQ(read_rule("-A C -j TPROXY --tproxy-mark 5/6 --on-port 7").target, Target(Tproxy{7, 5, 6}));
  EXPECT_EQ(read_rule("-A C -j X").target, Target(Jump{"X", false}));
  EXPECT_EQ(read_rule("-A C -g X").target, Target(Jump{"X", true}));
}

// As iptables-save, older versions of it, and people write them.
TEST(ReadRule, KnowsOtherWordsForTheSame) {
  for (const auto& [words, same] : std::vector<std::pair<std::string, std::string>>{
           {"-p tcp -m tcp --dport 80 -j ACCEPT", "-p tcp --dport 80 -j ACCEPT"},
           {"-p tcp -m tcp -j ACCEPT", "-p tcp -j ACCEPT"},
           {"--protocol tcp --destination-port 80 --jump ACCEPT", "-p tcp --dport 80 -j ACCEPT"},
           {"--source 10.0.0.0/8 --in-interface eth0 --goto X", "-s 10.0.0.0/8 -i eth0 -g X"},
           {"-d ! 10.0.0.0/8 -j ACCEPT", "! -d 10.0.0.0/8 -j ACCEPT"},
           {"-d 10.0.0.0/255.0.0.0 -j ACCEPT", "-d 10.0.0.0/8 -j ACCEPT"},
           {"-m state --state NEW -j ACCEPT", "-m conntrack --ctstate NEW -j ACCEPT"},
           {"-m iprange --src-range 10.0.0.1-10.0.0.9 -j DROP", "-s 10.0.0.1-10.0.0.9 -j DROP"},
           {"-p sctp -j ACCEPT", "-p 132 -j ACCEPT"},
           {"-p icmpv6 -j ACCEPT", "-p ipv6-icmp -j ACCEPT"},
           {"-p tcp -j REDIRECT --to-port 15001", "-p tcp -j REDIRECT --to-ports 15001"},
           {"-p tcp -j REDIRECT --to 15001", "-p tcp -j REDIRECT --to-ports 15001"},
           {"-p tcp -j DNAT --to 10.0.0.1:80", "-p tcp -j DNAT --to-destination 10.0.0.1:80"},
           {"-j MARK --set-xmark 0x539/0xffffffff", "-j MARK --set-mark 1337"},
           {"-j CONNMARK --save-mark --nfmask 0xffffffff --ctmask 0xffffffff", "-j CONNMARK --save-mark"},
           {"-j CONNMARK --restore-mark --mask 0x80", "-j CONNMARK --restore-mark --nfmask 0x80 --ctmask 0x80"},
           {"-j CONNMARK --save-mark --nfmask 255", "-j CONNMARK --save-mark --nfmask 0xff --ctmask 0xffffffff"},
           {"-j TPROXY --on-port 15006 --on-ip 0.0.0.0 --tproxy-mark 0x539/0xffffffff",
            "-j TPROXY --tproxy-mark 1337/0xffffffff --on-port 15006"},
           {"-j NOTRACK", "-j CT --notrack"},
       }) {
    EXPECT_EQ(iptables_words(read_rule("-A C " + words)), "-A C " + same);
  }
  EXPECT_THAT(not_understood("-A C -d 10.0.0.0/255.0.255.0 -j ACCEPT"), ElementsAre("-d 10.0.0.0/255.0.255.0"));
  // Bits that stay and are inverted.
  EXPECT_EQ(not_understood("-A C -j CONNMARK --save-mark --nfmask 0x3 --ctmask 0x1").size(), 1U);
  // A comment may be any word.
  EXPECT_EQ(iptables_words(read_rule("-A C -m comment --comment -j -j DROP")), "-A C -m comment --comment -j -j DROP");
  EXPECT_EQ(iptables_words(read_rule(R"(-A C -m comment --comment "!" -j DROP)")),
            R"(-A C -m comment --comment "!" -j DROP)");
}

TEST(ReadRule, KnowsWordsInQuotes) {
  const Rule rule = read_rule(R"(-A C  -m comment --comment "a \"b\" \\ c" -j ACCEPT)");
  EXPECT_EQ(std::get<CommentMatch>(rule.matches.at(0)).text, R"(a "b" \ c)");
  EXPECT_EQ(std::get<CommentMatch>(read_rule(R"(-A C -m comment --comment a\b)").matches.at(0)).text, R"(a\b)");
  EXPECT_EQ(std::get<CommentMatch>(read_rule(R"(-A C -m comment --comment "")").matches.at(0)).text, "");
}

TEST(ReadRule, IsInsertedAtItsPlace) {
  EXPECT_EQ(read_rule("-I C 3 -j DROP").insert_at, 3U);
  EXPECT_EQ(read_rule("-A C -j DROP").insert_at, std::nullopt);
}

TEST(ReadRule, RefusesWhatIsNone) {
  for (const std::string words :
       {"", "-A", "-N C", "-D C -j DROP", "-I C", "-I C 0 -j DROP", "-I C x -j DROP", "-A C tcp -j DROP"}) {
    try {
      static_cast<void>(read_rule(words));
      ADD_FAILURE() << words;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_THAT(error.what(), HasSubstr("'" + words + "': expected a rule as iptables -S writes it"));
    }
  }
}

TEST(ReadRule, ReadsNumbersAsIptablesDoes) {
  for (const auto& [words, same] : std::vector<std::pair<std::string, std::string>>{
           {"-p TCP --dport 010", "-p tcp --dport 8"},
           {"-p udp -m multiport --dports 010,0x20:040", "-p udp -m multiport --dports 8,32"},
           {"-m owner --uid-owner 0100", "-m owner --uid-owner 64"},
           {"-m owner --uid-owner root", "-m owner --uid-owner 0"},
           {"-m mark --mark 010", "-m mark --mark 8"},
           {"-p tcp -j REDIRECT --to-ports 010", "-p tcp -j REDIRECT --to-ports 8"},
           {"-p tcp -j DNAT --to-destination 192.0.2.2:010", "-p tcp -j DNAT --to-destination 192.0.2.2:8"},
           {"-s 10.1/16 -d 10/8", "-s 10.1.0.0/16 -d 10.0.0.0/8"},
           {"-s 10.1.2", "-s 10.1.2.0/32"},
       }) {
    EXPECT_EQ(iptables_words(read_rule("-A C " + words)), iptables_words(read_rule("-A C " + same)));
    EXPECT_THAT(not_understood("-A C " + words), IsEmpty());
  }
}

// With iptables-restore of 1.8.9 as it was seen.
TEST(ReadRule, RefusesWhatIptablesDoes) {
  for (const auto& [words, why] : std::vector<std::pair<std::string, std::string>>{
           {"-p tcp --dport 99999 -j DROP", "'--dport 99999': expected ports of 0 to 65535"},
           {"-p tcp --dport 080 -j DROP", "'--dport 080': expected ports of 0 to 65535"},
           {"-p tcp ! --sport 90:80 -j DROP", "'! --sport 90:80': expected the lowest port first"},
           {"-p tcp --dport 80,81 -j DROP", "'--dport 80,81': expected one port or range, or -m multiport"},
           {"-p tcp --dport 80 --dport 90 -j DROP", "'--dport 90': expected the option once"},
           {"-p tcp -m multiport --dports 1:2,3,4,5,6,7,8,9,10,11,12,13,14,15,16",
            "expected 15 ports at most, of which a range takes two"},
           {"-p tcp -m multiport --dports 80,70000", "'--dports 80,70000': expected ports of 0 to 65535"},
           {"--dport 80 -j DROP", "'--dport': expected a protocol that has ports, as -p tcp"},
           {"-p icmp --dport 80 -j DROP", "'--dport': expected a protocol that has ports, as -p tcp"},
           {"! -p tcp -m multiport --ports 80", "'--ports': expected a protocol that has ports, as -p tcp"},
           {"-s 10.0.0.256 -j DROP", "'-s 10.0.0.256': expected an address"},
           {"-s 10.0.0.0/33 -j DROP", "'-s 10.0.0.0/33': expected a prefix of 0 to 32"},
           {"-d fd00::/129 -j DROP", "'-d fd00::/129': expected a prefix of 0 to 128"},
           {"! -s 10.0.0.1,10.0.0.2 -j DROP", "'! -s 10.0.0.1,10.0.0.2': expected one address behind !"},
           {"-s 10.0.0.1 -s 10.0.0.2", "'-s 10.0.0.2': expected the option once"},
           {"-p 300 -j DROP", "'-p 300': expected the name of a protocol, or 0 to 255"},
           {"-m mark --mark 0x100000000 -j DROP", "'--mark 0x100000000': expected MARK or MARK/MASK, of 32 bits"},
           {"-p tcp -j REDIRECT --to-ports 70000", "'--to-ports 70000': expected a port of 0 to 65535, or FIRST-LAST"},
           {"-p tcp -j REDIRECT --to-ports 80 --to-ports 90", "'--to-ports 90': expected the option once"},
           {"-p tcp -j DNAT --to-destination 10.0.0.1:99999", "expected a port of 0 to 65535, or FIRST-LAST"},
           {"-p tcp -j DNAT --to-destination 10.0.0.256", "'--to-destination 10.0.0.256': expected an address"},
           {"-j DNAT", "'-j DNAT': expected an option, as --to-destination"},
       }) {
    EXPECT_THAT(why_refused(rule_words("-A C " + words)), HasSubstr(why));
  }
  for (const std::string words : {
           "-p tcp -m multiport --dport 80,81 -j DROP",
           "-p tcp -m tcp --dport 1024: -j DROP",
           "-p tcp -m tcp --dport :ssh -j DROP",
           "-p TCP --dport ! 80 -j DROP",
           "-m mark --mark 1 -m mark --mark 2 -j DROP",
           "-m connmark --mark 1 -m mark --mark 2/3 -j MARK --set-mark 3",
           "-p tcp -m tcp --dport 80 -m tcp --dport 81",
           R"(-m comment --comment "--dport 99999" -j ACCEPT)",
           "-m comment --comment -s -s 10.0.0.1 -j ACCEPT",
           "-j LOG --log-prefix -p",
           "-s 10.0.0.0/255.0.255.0 -d mesh.example",
           "-p $PROTOCOL --dport $PORT -m mark --mark $MARK",
           "$MATCH --dport 80 -j DROP",
           "-p sctp --dport 80 -j DROP",
           "-p 6 -m multiport --ports 80 -j DROP",
           "-p 0x11 --dport 53 -j DROP",
           "-d fe80::1 -p tcp -j DNAT --to-destination [fe80::1%eth0]:80",
           "-p tcp -j DNAT --to-destination 10.0.0.1-10.0.0.9:80-90",
           "-p tcp -j DNAT --to-destination 10.0.0.1:80-90/1000",
       }) {
    EXPECT_EQ(why_refused(rule_words("-A C " + words)), "") << words;
  }
}

}  // namespace
}  // namespace sidetrack
