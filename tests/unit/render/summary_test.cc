// SPDX-License-Identifier: GPL-2.0-or-later
// What `show` says in its last lines, of rules that are written by hand.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "mesh/rule_words.h"
#include "render/show.h"
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

Summary summary_of(const char* hook, const Rules& rules, Table table = Table::nat, Families families = Family::ipv4) {
  Live live;
  live.chains = {chain(families, table, hook, false, rules)};
  return summary({{live}});
}

// Of IPv4 alone, without these words.
std::string outbound(const Rules& rules) {
  const std::string text = summary_of("OUTPUT", rules).outbound;
  return text.starts_with("IPv4 only: ") ? text.substr(11) : text;
}
std::string left_out(const char* hook, const Rules& rules, Table table = Table::nat) {
  const std::string text = summary_of(hook, rules, table).left_out;
  return text.starts_with("IPv4 only: ") ? text.substr(11) : text;
}

Match ports(std::vector<PortRange> ranges) { return PortMatch{End::destination, std::move(ranges), false}; }
Match source_ports(std::vector<PortRange> ranges) { return PortMatch{End::source, std::move(ranges), false}; }
Match owners(OwnerKind kind, std::vector<IdRange> ids) { return OwnerMatch{kind, std::move(ids), false}; }

TEST(Summary, NamesWhatIsCaptured) {
  const std::string end = " goes to port 15001 (Envoy outbound)";
  for (const auto& [matches, expected] : std::vector<std::pair<std::vector<Match>, std::string>>{
           {{}, "TCP"},
           {{tcp}, "TCP"},
           {{udp}, "UDP"},
           {{tcp, dport(80)}, "TCP to port 80"},
           {{tcp, ports({{80, 90}})}, "TCP to ports 80-90"},
           {{tcp, ports({80, 90})}, "TCP to ports 80, 90"},
           {{udp, dport(53)}, "DNS"},
           {{udp, dport(53), destination(ten)}, "DNS to 10.0.0.0/8"},
           {{udp, ports({53, 54})}, "UDP to ports 53, 54"},
           {{tcp, except(dport(53))}, "TCP"},
           {{tcp, sport(53)}, "TCP"},
           {{tcp, destination(ten)}, "TCP to 10.0.0.0/8"},
           {{tcp, dport(80), destination(ten)}, "TCP to port 80 to 10.0.0.0/8"},
           {{tcp, except(destination(ten))}, "TCP"},
           {{tcp, AddressMatch{End::destination, {ten, loopback}, false}}, "TCP to 10.0.0.0/8"},
           {{tcp, destination(loopback)}, "TCP to 127.0.0.1/32"},
           {{tcp, source(ten)}, "TCP from 10.0.0.0/8"},
           {{tcp, except(source(ten))}, "TCP"},
           {{tcp, source(AddressRange::single(Address::passthrough(Family::ipv4)))}, "TCP"},
           {{tcp, in("eth1")}, "TCP from eth1"},
           {{tcp, except(in("eth1"))}, "TCP"},
           {{tcp, out("eth1")}, "TCP"},
           {{tcp, in("eth\n")}, "TCP from eth\\x0a"},
           {{tcp, in("eth1"), source(ten), dport(80)}, "TCP from eth1 from 10.0.0.0/8 to port 80"},
           {{tcp, except(owner(OwnerKind::uid, 7))}, "TCP"},
       })
    EXPECT_EQ(outbound({{matches, to_proxy}}), expected + end);
  // What one user sends is the proxy calling its own pod.
  EXPECT_EQ(outbound({{{tcp, owner(OwnerKind::uid, 7)}, to_proxy}}), "nothing is captured");
  EXPECT_EQ(outbound({{{tcp, cgroup({"a", 0, "a"})}, to_proxy}}), "nothing is captured");
  EXPECT_EQ(outbound({{{}, Redirect{7}}}), "TCP goes to port 7");
  EXPECT_EQ(outbound({{{udp}, Tproxy{15001, 1, 1}}}), "UDP goes to port 15001 (Envoy outbound) by TPROXY");
}

TEST(Summary, SaysEachThingOnceAndTogetherWhatHasOneEnd) {
  EXPECT_EQ(outbound({{{tcp, dport(1)}, to_proxy},
                      {{tcp, dport(2)}, Redirect{7}},
                      {{tcp, dport(3)}, to_proxy},
                      {{tcp, dport(4), sport(9)}, to_proxy},
                      {{tcp, dport(4), sport(8)}, to_proxy}}),
            "TCP to port 1, TCP to port 3, TCP to port 4 goes to port 15001 (Envoy outbound); TCP to port 2 goes to "
            "port 7");
}

TEST(Summary, SaysWhatHoldsForOneFamilyAlone) {
  Live live;
  live.chains = {
      chain(Family::ipv4, Table::nat, "OUTPUT", false,
            {{{tcp, dport(1)}, to_proxy}, {{tcp, dport(2)}, Redirect{2}}, {{tcp, dport(4)}, Redirect{4}}}),
      chain(Family::ipv6, Table::nat, "OUTPUT", false, {{{tcp, dport(1)}, to_proxy}, {{tcp, dport(3)}, Redirect{3}}})};
  EXPECT_EQ(summary({{live}}).outbound,
            "TCP to port 1 goes to port 15001 (Envoy outbound); IPv4 only: TCP to port 2 goes to port 2; TCP to port "
            "4 goes to port 4; IPv6 only: TCP to port 3 goes to port 3");
  // A rule for one family in a chain of both.
  live.chains = {chain(Families::both(), Table::nat, "OUTPUT", false, {{{tcp}, to_proxy}})};
  EXPECT_EQ(summary({{live}}).outbound, "TCP goes to port 15001 (Envoy outbound)");
  live.chains.front().rules.front().rule.families = Family::ipv6;
  EXPECT_EQ(summary({{live}}).outbound, "IPv6 only: TCP goes to port 15001 (Envoy outbound)");
}

TEST(Summary, NamesWhatIsLeftOut) {
  const Verdict leave = Verdict::return_;
  for (const auto& [matches, expected] : std::vector<std::pair<std::vector<Match>, std::string>>{
           {{}, "nothing"},
           {{tcp}, "nothing"},
           {{tcp, dport(80)}, "outbound to port 80"},
           {{tcp, destination(ten)}, "outbound to 10.0.0.0/8"},
           {{tcp, source(ten)}, "outbound from 10.0.0.0/8"},
           {{tcp, except(source(ten))}, "nothing"},
           {{tcp, source(AddressRange::single(Address::passthrough(Family::ipv4)))}, "nothing"},
           {{tcp, destination(loopback)}, "nothing"},
           {{tcp, AddressMatch{End::destination, {ten, loopback}, false}}, "outbound to 10.0.0.0/8"},
           {{tcp, dport(80), destination(loopback)}, "nothing"},
           {{out("eth1")}, "interface eth1"},
           {{in("eth1")}, "interface eth1"},
           {{out("lo"), dport(80)}, "nothing"},
           {{in("lo"), dport(80)}, "nothing"},
           {{owner(OwnerKind::uid, 7)}, "sent by uid 7"},
           {{owner(OwnerKind::gid, 7), dport(80)}, "sent by gid 7 to port 80"},
           {{owner(OwnerKind::gid, 7), ports({{80, 81}})}, "sent by gid 7 to ports 80-81"},
           {{owner(OwnerKind::uid, 1), owner(OwnerKind::gid, 2)}, "sent by uid 1, gid 2"},
           {{owner(OwnerKind::uid, 1), cgroup({"a/b", 0, "a/b"})}, "sent by uid 1, cgroup a/b"},
           {{cgroup({"a\n", 0, "a"})}, "sent by cgroup a\\x0a"},
           {{cgroup({"", 77, ""})}, "sent by cgroup 77"},
           {{except(cgroup({"a", 0, "a"}))}, "nothing"},
           {{except(owner(OwnerKind::gid, 1)), except(owner(OwnerKind::gid, 2))}, "groups other than 1, 2"},
           {{mark(5), dport(80)}, "nothing"},
           {{sport(53), dport(80)}, "nothing"},
           {{except(dport(80))}, "nothing"},
           {{except(destination(ten))}, "nothing"},
           {{dport(80), destination(ten)}, "outbound to port 80"},
       }) {
    EXPECT_EQ(left_out("OUTPUT", {{matches, leave}}), expected);
    EXPECT_EQ(left_out("OUTPUT", {{matches, Verdict::accept}}), expected);
    EXPECT_EQ(left_out("OUTPUT", {{matches, Verdict::drop}}), "nothing");
    EXPECT_EQ(left_out("OUTPUT", {{matches, to_proxy}}), "nothing");
  }
  EXPECT_EQ(left_out("PREROUTING", {{{dport(80)}, leave}}), "inbound to port 80");
  EXPECT_EQ(left_out("PREROUTING", {{{source(ten)}, leave}}), "inbound from 10.0.0.0/8");
  EXPECT_EQ(left_out("PREROUTING", {{{dport(80)}, leave}}, Table::raw), "nothing");
  EXPECT_EQ(left_out("INPUT", {{{dport(80)}, leave}}), "nothing");
}

// Of a later rule what an earlier one has ended is not said.
TEST(Summary, TakesOutWhatAnEarlierRuleEnds) {
  const std::string end = " goes to port 15001 (Envoy outbound)";
  const auto after = [](const std::vector<Match>& earlier, const std::vector<Match>& later) {
    return outbound({{earlier, Verdict::return_}, {later, to_proxy}});
  };
  const std::string nothing = "nothing is captured";
  // The same, or more than that.
  EXPECT_EQ(after({}, {tcp}), nothing);
  EXPECT_EQ(after({tcp}, {tcp}), nothing);
  EXPECT_EQ(after({tcp}, {tcp, dport(80)}), nothing);
  EXPECT_EQ(after({ports({{1, 100}})}, {ports({{1, 100}})}), nothing);
  EXPECT_EQ(after({ports({{1, 100}})}, {ports({{2, 99}})}), nothing);
  EXPECT_EQ(after({destination(ten)}, {destination(one_of_ten)}), nothing);
  EXPECT_EQ(after({destination(ten), ports({{1, 100}})}, {ports({80}), destination(one_of_ten)}), nothing);
  // Less: of a list what is left.
  EXPECT_EQ(after({ports({{1, 100}})}, {ports({{1, 101}})}), "TCP to ports 1-101" + end);
  EXPECT_EQ(after({ports({{1, 100}})}, {ports({{0, 100}})}), "TCP to ports 0-100" + end);
  EXPECT_EQ(after({ports({80, 81})}, {ports({80, 82, 81})}), "TCP to port 82" + end);
  EXPECT_EQ(after({destination(ten)}, {AddressMatch{End::destination, {one_of_ten, eleven}, false}}),
            "TCP to 11.0.0.0/8" + end);
  EXPECT_EQ(after({tcp, ports({80})}, {tcp, ports({80, 82})}), "TCP to port 82" + end);
  // Another end, another owner, or what is negated, says nothing.
  EXPECT_EQ(after({source_ports({80})}, {ports({80, 82})}), "TCP to ports 80, 82" + end);
  EXPECT_EQ(after({source(ten)}, {destination(ten)}), "TCP to 10.0.0.0/8" + end);
  EXPECT_EQ(after({except(dport(80))}, {ports({80, 82})}), "TCP to ports 80, 82" + end);
  EXPECT_EQ(after({dport(80)}, {except(dport(80))}), "TCP" + end);
  EXPECT_EQ(after({UnknownMatch{"-m x"}}, {UnknownMatch{"-m x"}}), "TCP" + end);
  EXPECT_EQ(after({udp}, {tcp}), "TCP" + end);
  // Where two conditions hold in part, a part of neither is taken out.
  EXPECT_EQ(after({ports({80}), destination(ten)},
                  {ports({80, 82}), AddressMatch{End::destination, {one_of_ten, eleven}, false}}),
            "TCP to ports 80, 82 to 10.1.0.0/16, 11.0.0.0/8" + end);
  // Two rules that end a part each.
  EXPECT_EQ(
      outbound(
          {{{ports({80})}, Verdict::return_}, {{ports({82})}, Verdict::accept}, {{ports({80, 81, 82})}, to_proxy}}),
      "TCP to port 81" + end);
  // What ends nothing.
  EXPECT_EQ(outbound({{{ports({80})}, SetMark{1}}, {{ports({80})}, to_proxy}}), "TCP to port 80" + end);
  EXPECT_EQ(outbound({{{}, Verdict::drop}, {{}, to_proxy}}), nothing);
  EXPECT_EQ(outbound({{{}, Redirect{7}}, {{}, to_proxy}}), "TCP goes to port 7");
}

// Of users a rule that follows is said as far as it is reached; what it leaves out is said whole.
TEST(Summary, TakesOutOwners) {
  const auto captured = [](const std::vector<Match>& earlier, const std::vector<Match>& later) {
    return outbound({{earlier, Verdict::return_}, {later, to_proxy}});
  };
  const Match few = owners(OwnerKind::uid, {{5, 6}});
  const Match many = owners(OwnerKind::uid, {{1, 9}});
  const std::string all = "TCP goes to port 15001 (Envoy outbound)";
  EXPECT_EQ(captured({many}, {tcp}), all);
  EXPECT_EQ(captured({except(owner(OwnerKind::gid, 0))}, {tcp}), all);
  EXPECT_EQ(left_out("OUTPUT", {{{many}, Verdict::return_}, {{few}, Verdict::return_}}), "sent by uid 1-9, uid 5-6");
}

// No packet has two protocols.
TEST(Summary, SaysNothingOfConditionsThatContradictEachOther) {
  const auto through = [](const std::vector<Match>& jump, const std::vector<Match>& rule) {
    Live live;
    live.chains = {chain(Family::ipv4, Table::nat, "OUTPUT", false, {{jump, Jump{"C"}}}),
                   chain(Family::ipv4, Table::nat, "C", false, {{rule, to_proxy}})};
    return summary({{live}}).outbound;
  };
  EXPECT_EQ(through({tcp}, {udp}), "nothing is captured");
  EXPECT_EQ(through({tcp}, {tcp}), "IPv4 only: TCP goes to port 15001 (Envoy outbound)");
  EXPECT_EQ(through({except(tcp)}, {udp}), "IPv4 only: UDP goes to port 15001 (Envoy outbound)");
  EXPECT_EQ(through({tcp, dport(80)}, {udp}), "nothing is captured");
}

// Of chains that nobody calls, that are missing, or of a dormant table.
TEST(Summary, FollowsWhatTheKernelCalls) {
  Live live;
  live.chains = {chain(Family::ipv4, Table::nat, "OUTPUT", false, {{{}, Jump{"C"}}, {{}, Jump{"MISSING"}}}),
                 chain(Family::ipv4, Table::nat, "C", false, {{{tcp}, Verdict::return_}, {{}, Jump{"D"}}}),
                 chain(Family::ipv4, Table::nat, "D", false, {{{udp}, to_proxy}}),
                 chain(Family::ipv4, Table::nat, "UNUSED", false, {{{}, Redirect{7}}})};
  EXPECT_EQ(summary({{live}}).outbound, "IPv4 only: UDP goes to port 15001 (Envoy outbound)");
  live.chains.front().dormant = true;
  EXPECT_EQ(summary({{live}}).outbound, "nothing is captured");
}

// The kernel refuses chains that are nested too deep; what is read may be so all the same.
TEST(Summary, SaysWhereItDidNotFollow) {
  const auto nested = [](std::size_t depth) {
    Live live;
    live.backend = BackendKind::nftables;
    live.chains = {chain(Families::both(), Table::nat, "OUTPUT", false, {{{}, Jump{"C1"}}})};
    for (std::size_t i = 1; i < depth; ++i) {
      const std::string name = "C" + std::to_string(i);
      live.chains.push_back(
          chain(Families::both(), Table::nat, name.c_str(), false, {{{}, Jump{"C" + std::to_string(i + 1)}}}));
    }
    const std::string last = "C" + std::to_string(depth);
    live.chains.push_back(chain(Families::both(), Table::nat, last.c_str(), false, {{{tcp}, to_proxy}}));
    return summary({{live}}).outbound;
  };
  const std::size_t deepest = traits(BackendKind::nftables).deepest_jump;
  EXPECT_EQ(nested(deepest), "TCP goes to port 15001 (Envoy outbound)");
  EXPECT_EQ(nested(deepest + 1), "and perhaps more: the rules have too many paths to follow them all");
}

}  // namespace
}  // namespace sidetrack
