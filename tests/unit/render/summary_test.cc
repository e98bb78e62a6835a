// SPDX-License-Identifier: GPL-2.0-or-later
// What `show` says in its last lines, of rules that are written by hand.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "mesh/rule_words.h"
#include "render/show.h"
#include "unit/asking.h"
#include "unit/live_rules.h"

namespace sidetrack {
namespace {

using namespace words;

using Rules = std::vector<std::pair<std::vector<Match>, Target>>;

constexpr Redirect to_proxy{15001};

const AddressRange ten = *AddressRange::parse("10.0.0.0/8");
const AddressRange one_of_ten = *AddressRange::parse("10.1.0.0/16");
const AddressRange eleven = *AddressRange::parse("11.0.0.0/8");
const AddressRange loopback = *AddressRange::parse("127.0.0.1/32");

// Of IPv4 alone, without these words.
std::string of_ipv4(const std::string& text) { return text.starts_with("IPv4 only: ") ? text.substr(11) : text; }

Summary summary_of(const char* hook, const Rules& rules, Table table = Table::nat, Families families = Family::ipv4) {
  Live live;
  live.chains = {chain(families, table, hook, false, rules)};
  Summary made = summary(assumed_pod(Plan{}, {"eth1"}), {{live}});
  for (std::string* text : {&made.inbound, &made.outbound, &made.left_out}) *text = of_ipv4(*text);
  return made;
}
std::string outbound(const Rules& rules) { return summary_of("OUTPUT", rules).outbound; }
// What is left out of all tcp.
std::string left_out(const char* hook, std::vector<Match> matches, const Target& target = Verdict::return_) {
  return summary_of(hook, {{std::move(matches), target}, {{tcp}, to_proxy}}).left_out;
}

Match ports(std::vector<PortRange> ranges) { return PortMatch{End::destination, std::move(ranges), false}; }

TEST(Summary, NamesWhatIsCaptured) {
  const std::string end = " goes to port 15001 (Envoy outbound)";
  for (const auto& [matches, expected] : std::vector<std::pair<std::vector<Match>, std::string>>{
           {{tcp}, "TCP"},
           {{udp}, "UDP"},
           {{tcp, dport(80)}, "TCP to port 80"},
           {{tcp, ports({{80, 90}})}, "TCP to port 80-90"},
           {{tcp, ports({80, 90})}, "TCP to port 80, 90"},
           {{udp, dport(53)}, "DNS"},
           {{udp, dport(53), destination(ten)}, "DNS to 10.0.0.0/8"},
           {{udp, ports({53, 54})}, "UDP to port 53-54"},
           {{tcp, destination(ten)}, "TCP to 10.0.0.0/8"},
           {{tcp, dport(80), destination(ten)}, "TCP to 10.0.0.0/8 to port 80"},
           {{tcp, AddressMatch{End::destination, {ten, loopback}, false}}, "TCP to 10.0.0.0/8"},
           {{tcp, except(dport(53))}, "TCP"},
           {{tcp, except(destination(ten))}, "TCP"},
           {{tcp, except(owner(OwnerKind::uid, 7))}, "TCP"},
           {{tcp, owner(OwnerKind::uid, 7)}, "TCP sent by uid 7"},
           {{tcp, OwnerMatch{OwnerKind::gid, {{5, 6}, {9, 9}}, false}}, "TCP sent by gid 5-6, 9"},
           {{tcp, out("eth0")}, "TCP"},
       })
    EXPECT_EQ(outbound({{matches, to_proxy}}), expected + end);
  EXPECT_EQ(outbound({{{}, to_proxy}}), "TCP, UDP goes to port 15001 (Envoy outbound)");
  EXPECT_EQ(outbound({{{tcp}, Redirect{7}}}), "TCP goes to port 7");
  EXPECT_EQ(outbound({{{tcp}, UnknownTarget{"-j DNAT --any"}}}), "TCP has an unknown outcome (`-j DNAT --any`)");
  EXPECT_EQ(outbound({{{tcp, destination(loopback)}, to_proxy}}), "nothing is captured") << "it is the pod's own";
  EXPECT_EQ(outbound({{{tcp, in("eth1")}, to_proxy}}), "nothing is captured") << "nothing comes in there";
  EXPECT_EQ(summary_of("PREROUTING", {{{udp}, Tproxy{15001, 1, 1}}}, Table::mangle).inbound,
            "UDP goes to port 15001 (Envoy outbound) by TPROXY");
}

// Whoever wrote the rules, and whatever an earlier rule decides.
TEST(Summary, SaysWhatReachesARule) {
  const std::string end = " goes to port 15001 (Envoy outbound)";
  const auto after = [](const std::vector<Match>& earlier, const std::vector<Match>& later) {
    return outbound({{earlier, Verdict::return_}, {later, to_proxy}});
  };
  const std::string nothing = "nothing is captured";
  EXPECT_EQ(after({}, {tcp}), nothing);
  EXPECT_EQ(after({tcp}, {tcp, dport(80)}), nothing);
  EXPECT_EQ(after({ports({{1, 100}})}, {tcp, ports({{2, 99}})}), nothing);
  EXPECT_EQ(after({destination(ten), ports({{1, 100}})}, {tcp, ports({80}), destination(one_of_ten)}), nothing);
  EXPECT_EQ(after({ports({{1, 100}})}, {tcp, ports({{1, 101}})}), "TCP to port 101" + end);
  EXPECT_EQ(after({ports({80, 81})}, {tcp, ports({80, 82, 81})}), "TCP to port 82" + end);
  EXPECT_EQ(after({destination(ten)}, {tcp, AddressMatch{End::destination, {one_of_ten, eleven}, false}}),
            "TCP to 11.0.0.0/8" + end);
  EXPECT_EQ(after({dport(80)}, {tcp, except(dport(80))}), "TCP" + end);
  EXPECT_EQ(after({udp}, {tcp}), "TCP" + end);
  EXPECT_EQ(outbound({{{tcp, ports({80})}, SetMark{1}}, {{tcp, ports({80})}, to_proxy}}), "TCP to port 80" + end);
  EXPECT_EQ(outbound({{{}, Verdict::drop}, {{}, to_proxy}}), nothing);
  EXPECT_EQ(outbound({{{tcp}, Redirect{7}}, {{tcp}, to_proxy}}), "TCP goes to port 7");
  // A port that an earlier rule captures is not left out by a later one.
  const Summary whole = summary_of("PREROUTING", {{{tcp}, Redirect{15003}}, {{tcp, dport(15000)}, Verdict::return_}});
  EXPECT_EQ(whole.left_out, "nothing");
}

TEST(Summary, SaysTogetherWhatHasOneEnd) {
  EXPECT_EQ(outbound({{{tcp, dport(1)}, to_proxy}, {{tcp, dport(2)}, Redirect{7}}, {{tcp, dport(3)}, to_proxy}}),
            "TCP to port 1, 3 goes to port 15001 (Envoy outbound); TCP to port 2 goes to port 7");
  EXPECT_EQ(outbound({{{tcp, dport(22)}, Redirect{7}}, {{tcp}, to_proxy}}),
            "TCP goes to port 15001 (Envoy outbound); TCP to port 22 goes to port 7");
}

TEST(Summary, SaysWhatHoldsForOneFamilyAlone) {
  Live live;
  live.chains = {
      chain(Family::ipv4, Table::nat, "OUTPUT", false,
            {{{tcp, dport(1)}, to_proxy}, {{tcp, dport(2)}, Redirect{2}}, {{tcp, dport(4)}, Redirect{4}}}),
      chain(Family::ipv6, Table::nat, "OUTPUT", false, {{{tcp, dport(1)}, to_proxy}, {{tcp, dport(3)}, Redirect{3}}})};
  const PodView pod = assumed_pod(Plan{});
  EXPECT_EQ(summary(pod, {{live}}).outbound,
            "TCP to port 1 goes to port 15001 (Envoy outbound); IPv4 only: TCP to port 2 goes to port 2; TCP to port "
            "4 goes to port 4; IPv6 only: TCP to port 3 goes to port 3");
  // A rule for one family in a chain of both.
  live.chains = {chain(Families::both(), Table::nat, "OUTPUT", false, {{{tcp}, to_proxy}})};
  EXPECT_EQ(summary(pod, {{live}}).outbound, "TCP goes to port 15001 (Envoy outbound)");
  live.chains.front().rules.front().rule.families = Family::ipv6;
  EXPECT_EQ(summary(pod, {{live}}).outbound, "IPv6 only: TCP goes to port 15001 (Envoy outbound)");
  // A pod without addresses, and one whose IPv6 is link-local, as its rules would hold for one that has them.
  EXPECT_EQ(summary(PodView{}, {{live}}).outbound, "IPv6 only: TCP goes to port 15001 (Envoy outbound)");
}

TEST(Summary, NamesWhatIsLeftOut) {
  for (const auto& [matches, expected] : std::vector<std::pair<std::vector<Match>, std::string>>{
           {{udp}, "nothing"},
           {{tcp, dport(80)}, "outbound to port 80"},
           {{destination(ten)}, "outbound to 10.0.0.0/8"},
           {{destination(loopback)}, "nothing"},
           {{AddressMatch{End::destination, {ten, loopback}, false}}, "outbound to 10.0.0.0/8"},
           {{out("lo"), tcp, dport(80)}, "nothing"},
           {{owner(OwnerKind::uid, 7)}, "sent by uid 7"},
           {{owner(OwnerKind::gid, 7), tcp, dport(80)}, "outbound to port 80 sent by gid 7"},
           {{owner(OwnerKind::uid, 1), owner(OwnerKind::gid, 2)}, "sent by uid 1 sent by gid 2"},
           {{cgroup({"a/b", 0, "a/b"})}, "sent from cgroup a/b"},
           {{except(owner(OwnerKind::gid, 1))}, "nothing"},  // but what is captured is little
           {{mark(5)}, "nothing"},                           // which programs do not set
           {{tcp, dport(80), destination(ten)}, "outbound to 10.0.0.0/8 to port 80"},
       }) {
    EXPECT_EQ(left_out("OUTPUT", matches), expected);
    EXPECT_EQ(left_out("OUTPUT", matches, Verdict::accept), expected);
  }
  EXPECT_EQ(left_out("OUTPUT", {tcp, dport(80)}, Verdict::drop), "outbound to port 80 (dropped)");
  EXPECT_EQ(left_out("OUTPUT", {tcp, dport(80)}, to_proxy), "nothing");
  EXPECT_EQ(left_out("PREROUTING", {tcp, dport(80)}), "inbound to port 80; forwarded from eth1 to port 80");
  EXPECT_EQ(left_out("PREROUTING", {in("eth1")}), "inbound by eth1");
  EXPECT_EQ(left_out("PREROUTING", {source(ten)}), "inbound from 10.0.0.0/8");
  // Of what is captured by its address.
  const Summary some = summary_of("OUTPUT", {{{owner(OwnerKind::uid, 1337)}, Verdict::return_},
                                             {{tcp, dport(22)}, Verdict::return_},
                                             {{tcp, destination(ten)}, to_proxy}});
  EXPECT_EQ(some.outbound, "TCP to 10.0.0.0/8 goes to port 15001 (Envoy outbound)");
  EXPECT_EQ(some.left_out, "outbound to port 22; sent by uid 1337");
  // What goes elsewhere is no exception.
  const Summary dns = summary_of("OUTPUT", {{{tcp, dport(53)}, Redirect{15053}}, {{tcp, destination(ten)}, to_proxy}});
  EXPECT_EQ(dns.outbound,
            "TCP to 10.0.0.0/8 to any port but 53 goes to port 15001 (Envoy outbound); DNS goes to port 15053 (DNS)");
  EXPECT_EQ(dns.left_out, "nothing");
}

// What hosts behind the pod send to others.
// A thousand would be a line of half a megabyte.
TEST(Summary, NamesNoMoreThanPeopleRead) {
  Rules rules;
  for (std::uint16_t i = 0; i < 100; ++i) {
    const AddressRange address = *AddressRange::parse("10.0." + std::to_string(i) + ".1");
    const auto port = static_cast<std::uint16_t>(1000 + i);
    rules.push_back({{destination(address), tcp, dport(port)}, Verdict::return_});
  }
  rules.push_back({{tcp}, to_proxy});
  const std::string text = summary_of("OUTPUT", rules).left_out;
  EXPECT_TRUE(text.starts_with("outbound to 10.0.0.1 to port 1000; outbound to 10.0.1.1 to port 1001; ")) << text;
  EXPECT_TRUE(text.ends_with("to port 1015; and 84 more that 'sidetrack map' lists")) << text;
}

TEST(Summary, SpeaksOfForwardedTraffic) {
  const auto of = [](const char* options) {
    const Plan plan = planned(options);
    return summary(assumed_pod(plan), {{as_live(plan.ruleset, BackendKind::nftables)}});
  };
  EXPECT_EQ(
      of("-i * -b * -k docker0 --ip-families ipv4").inbound,
      "IPv4 only: TCP goes to port 15006 (Envoy inbound); TCP by docker0, forwarded TCP from docker0 goes to port "
      "15001 (Envoy outbound)");
  EXPECT_EQ(of("-i * -b * -c docker0 --ip-families ipv4").inbound, "IPv4 only: TCP goes to port 15006 (Envoy inbound)");
}

// What comes in by the port of a bridge, which has no address, is the bridge's.
TEST(Summary, LeavesOutInterfacesWithoutAddresses) {
  const Plan plan = planned("-i * -b * --ip-families ipv4");
  PodView pod = assumed_pod(plan);
  pod.interfaces.push_back({"veth0", {}});
  const Summary all = summary(pod, {{as_live(plan.ruleset, BackendKind::iptables_nft)}});
  EXPECT_EQ(all.inbound, "IPv4 only: TCP goes to port 15006 (Envoy inbound)");
  EXPECT_EQ(all.left_out, "IPv4 only: inbound to port 15008; sent by uid 1337, gid 1337");
}

// A rule that is not understood.
TEST(Summary, SaysWhatMayBeCaptured) {
  EXPECT_EQ(outbound({{{tcp, UnknownMatch{"-m x"}}, to_proxy}}), "TCP perhaps goes to port 15001 (Envoy outbound)");
}

TEST(Summary, FollowsWhatTheKernelCalls) {
  Live live;
  live.chains = {chain(Family::ipv4, Table::nat, "OUTPUT", false, {{{}, Jump{"C"}}, {{}, Jump{"MISSING"}}}),
                 chain(Family::ipv4, Table::nat, "C", false, {{{tcp}, Verdict::return_}, {{}, Jump{"D"}}}),
                 chain(Family::ipv4, Table::nat, "D", false, {{{udp}, to_proxy}}),
                 chain(Family::ipv4, Table::nat, "UNUSED", false, {{{}, Redirect{7}}})};
  EXPECT_EQ(summary(assumed_pod(Plan{}), {{live}}).outbound, "IPv4 only: UDP goes to port 15001 (Envoy outbound)");
  live.chains.front().dormant = true;
  EXPECT_EQ(summary(assumed_pod(Plan{}), {{live}}).outbound, "nothing is captured");
}

TEST(Summary, FollowsChainsThatJumpToEachOther) {
  const std::vector<Live> live{layered({{tcp}, {tcp}, {tcp, out("eth0")}, {tcp}}, to_proxy)};
  EXPECT_EQ(summary(assumed_pod(Plan{}), live).outbound, "IPv4 only: TCP goes to port 15001 (Envoy outbound)");
}

}  // namespace
}  // namespace sidetrack
