// SPDX-License-Identifier: GPL-2.0-or-later
// What rules look like in nft's words.
#include <gmock/gmock.h>

#include "kernel/nft/rule_reader.h"
#include "kernel/nft/script.h"
#include "kernel/survey.h"
#include "mesh/istio_rules.h"
#include "model/error.h"
#include "unit/asking.h"
#include "unit/kernel/round_trip.h"

namespace sidetrack {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string script(std::string_view options) {
  return nft_script(canonical(BackendKind::nftables, planned(options).ruleset), istio_rules);
}

// More values than are read at a glance are a set with a name, which says whose they are.
TEST(Native, LongListsHaveNames) {
  const std::string many = "1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33";
  EXPECT_THAT(script("-m TPROXY -u " + many), AllOf(HasSubstr("set proxy-uids "), HasSubstr("skuid @proxy-uids")));
  EXPECT_THAT(script("-m TPROXY -g " + many), AllOf(HasSubstr("skgid @proxy-gids"), Not(HasSubstr("proxy-uids"))));
  EXPECT_THAT(script("ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE=" + many), HasSubstr("skgid @nat-ISTIO_OUTPUT "));
  EXPECT_THAT(script("-m TPROXY -u 1,3"), Not(HasSubstr("proxy-uids")));
}

TEST(Native, NetworksThatTouchAreOneRange) {
  EXPECT_THAT(script("-x 10.0.0.0/24,10.0.1.0/24,10.0.2.0/24"), HasSubstr("ip daddr 10.0.0.0-10.0.2.255 "));
}

Rule rule(std::vector<Match> matches, Target target = Verdict::return_) {
  return {Family::ipv4, Table::nat, "ISTIO_OUTPUT", std::move(matches), std::move(target), {}, {}};
}

// Each match and target in the words of nft; what is sent for it reads back as the same rule.
TEST(Native, EveryMatchAndTargetHasItsWords) {
  const ProtocolMatch tcp{Protocol::tcp, false};
  const auto ports = [](End end, std::vector<PortRange> ranges, bool negated = false) {
    return PortMatch{end, std::move(ranges), negated};
  };
  const auto addresses = [](End end, std::vector<const char*> ranges, bool negated = false) {
    AddressMatch match{end, {}, negated};
    for (const char* range : ranges) match.ranges.push_back(*AddressRange::parse(range));
    return match;
  };
  const std::pair<std::vector<Match>, Target> all[] = {
      {{InterfaceMatch{InterfaceDirection::in, "eth0", false}}, Verdict::accept},
      {{InterfaceMatch{InterfaceDirection::out, "eth+", true}}, Verdict::drop},
      {{ProtocolMatch{Protocol::udp, true}}, Verdict::return_},
      {{tcp, ports(End::destination, {{80, 80}})}, Jump{"X"}},
      {{tcp, ports(End::source, {{80, 90}}, true)}, Jump{"X", true}},
      {{tcp, ports(End::destination, {{80, 90}}), ports(End::source, {{1, 1}, {3, 4}}, true)}, Redirect{15001}},
      {{ProtocolMatch{Protocol::udp, false}, ports(End::destination, {{53, 53}, {55, 55}})}, CtZone{2}},
      {{addresses(End::destination, {"10.0.0.0/8"})}, SetMark{1337}},
      {{addresses(End::source, {"10.1.2.3/32"}, true)}, SetMark{5, 0xff}},
      {{addresses(End::destination, {"10.0.0.0/8", "192.168.0.0/16"})}, SetConnmark{5, 0xffffffff}},
      {{addresses(End::source, {"10.0.0.1/32", "10.0.0.3/32"}, true)}, SetConnmark{5, 0xff}},
      {{addresses(End::destination, {"10.16.0.0/13"}), tcp}, Tproxy{15006, 1337, 0xffffffff}},
      {{OwnerMatch{OwnerKind::uid, {{1337, 1337}}, false}}, Connmark::save},
      {{OwnerMatch{OwnerKind::gid, {{5, 9}}, true}}, Connmark::restore},
      {{OwnerMatch{OwnerKind::gid, {{5, 5}, {7, 7}}, true}}, Verdict::accept},
      {{OwnerMatch{OwnerKind::uid, {{5, 5}, {7, 9}}, false}}, Verdict::accept},
      {{SocketMatch{}}, Verdict::accept},
      {{ConntrackStateMatch{ConntrackStateMatch::related | ConntrackStateMatch::established, false}}, Verdict::accept},
      {{ConntrackStateMatch{ConntrackStateMatch::invalid, true}}, Verdict::accept},
      {{ConntrackDirectionMatch{true}}, Verdict::accept},
      {{ConntrackDirectionMatch{false}}, Verdict::accept},
      {{MarkMatch{1337, 0xffffffff, false}}, Verdict::accept},
      {{MarkMatch{1, 0xff, true}}, Verdict::accept},
      {{MarkMatch{1, 0xff, false}}, Verdict::accept},
      {{ConnmarkMatch{1337, 0xffffffff, true}}, Verdict::accept},
      {{tcp}, Tproxy{15006, 0, 0}},
      {{tcp}, Tproxy{15006, 5, 0xff}},
      {{}, source_nat(*Address::parse("10.0.0.1"))},
      {{}, source_nat(*Address::parse("fd00::1"))},
  };
  std::string text = "\n";
  for (const auto& [matches, target] : all) {
    const bool ipv4 =
        std::ranges::any_of(matches, [](const Match& each) { return std::holds_alternative<AddressMatch>(each); });
    const Families families = ipv4 ? Families(Family::ipv4) : Families::both();
    const Ruleset asked{{{families, Table::nat, "ISTIO_OUTPUT", matches, target, {}, {}}}, {}};
    const nft::NativeTable table = nft::native(asked, istio_rules);
    for (const nft::NativeRule& each : table.chains.at(0).rules) {
      std::string line;
      for (const nft::Statement& statement : each.statements)
        line += (line.empty() ? "" : " ") + (statement.text == "counter" ? "|" : statement.text);
      text += line + "\n";
    }
    nft::Reading reading;
    const std::vector<LiveChain> read = nft::rules_of(nft::stored(table), reading, istio_rules);
    ASSERT_EQ(read.at(0).rules.size(), 1U) << text;
    if (std::holds_alternative<Nat>(target)) continue;  // the kernel adds a flag, by which it is read
    EXPECT_EQ(iptables_words(read[0].rules[0].rule), iptables_words(asked.rules[0]));
  }
  EXPECT_EQ(text, R"(
iifname "eth0" | accept
oifname != "eth*" | drop
meta l4proto != udp | return
tcp dport 80 | jump nat-X
tcp sport != 80-90 | goto nat-X
tcp dport 80-90 tcp sport != { 1, 3-4 } | redirect to :15001
udp dport { 53, 55 } | ct zone set 2
ip daddr 10.0.0.0/8 | meta mark set 0x00000539
ip saddr != 10.1.2.3 | meta mark set meta mark & 0xffffff00 ^ 0x00000005
ip daddr { 10.0.0.0/8, 192.168.0.0/16 } | ct mark set 0x00000005
ip saddr != { 10.0.0.1, 10.0.0.3 } | ct mark set ct mark & 0xffffff00 ^ 0x00000005
ip daddr 10.16.0.0/13 meta l4proto tcp | tproxy ip to :15006 meta mark set 0x00000539 accept
ip daddr 10.16.0.0/13 meta l4proto tcp | drop
meta skuid 1337 | ct mark set meta mark
meta skgid != 5-9 | meta mark set ct mark
meta skgid != { 5, 7 } | accept
meta skuid { 5, 7-9 } | accept
meta skuid 0-4294967295 | accept
ct state established,related | accept
ct state ! invalid | accept
ct direction reply | accept
ct direction original | accept
meta mark 0x00000539 | accept
meta mark & 0x000000ff != 0x00000001 | accept
meta mark & 0x000000ff == 0x00000001 | accept
ct mark != 0x00000539 | accept
meta l4proto tcp | tproxy to :15006 accept
meta l4proto tcp | drop
meta l4proto tcp | tproxy to :15006 meta mark set meta mark & 0xffffff00 ^ 0x00000005 accept
meta l4proto tcp | drop
| snat ip to 10.0.0.1
| snat ip6 to fd00::1
)");
}

// What a caller of the library may ask for, and what is only read.
TEST(Native, RefusesWhatItCannotSay) {
  const auto refused = [](const Rule& one) -> std::string {
    try {
      static_cast<void>(nft_script({{one}}, istio_rules));
    } catch (const Error& error) {
      return error.what();
    }
    return "taken";
  };
  const PortMatch web{End::destination, {{80, 80}}, false};
  const std::string no_protocol = "a match of ports without -p tcp or -p udp: -A ISTIO_OUTPUT ";
  EXPECT_EQ(refused(rule({web})), no_protocol + "--dport 80 -j RETURN");
  EXPECT_EQ(refused(rule({ProtocolMatch{Protocol{132}, false}, web})), no_protocol + "-p 132 --dport 80 -j RETURN");
  EXPECT_EQ(refused(rule({ProtocolMatch{Protocol::tcp, true}, web})), no_protocol + "! -p tcp --dport 80 -j RETURN");
  EXPECT_EQ(refused(rule({ProtocolMatch{Protocol::udp, false}, web})), "taken");
  EXPECT_EQ(refused(rule({InterfaceMatch{InterfaceDirection::out, "+", true}})),
            "no packet can match: -A ISTIO_OUTPUT ! -o + -j RETURN");
  const std::string unknown = "a rule that is not understood cannot be written: -A ISTIO_OUTPUT ";
  EXPECT_EQ(refused(rule({UnknownMatch{"-m string"}})), unknown + "-m string -j RETURN");
  EXPECT_EQ(refused(rule({SocketMatch{true}})), unknown + "-m owner ! --socket-exists -j RETURN");
  EXPECT_EQ(refused(rule({SocketMatch{false}})), "taken");
  EXPECT_EQ(refused(rule({}, UnknownTarget{"-j QUEUE"})), unknown + "-j QUEUE");
  EXPECT_EQ(refused(rule({}, NonTerminating{"-j LOG"})), unknown + "-j LOG");
  EXPECT_EQ(refused(rule({}, NonTerminating{})), "taken");
  EXPECT_EQ(refused(rule({}, Nat{End::source, {}, {}, "-j MASQUERADE"})), unknown + "-j MASQUERADE");
  EXPECT_EQ(refused(rule({}, source_nat(*Address::parse("10.0.0.1")))), "taken");
}

}  // namespace
}  // namespace sidetrack
