// SPDX-License-Identifier: GPL-2.0-or-later
// Rules, routes and policy rules in the words of iptables and ip.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/pod.h"
#include "model/routing.h"
#include "rule/hook.h"
#include "rule/iptables.h"

namespace sidetrack {
namespace {

AddressRange range(const char* text) { return *AddressRange::parse(text); }

TEST(IptablesWords, OfEachMatch) {
  std::string all = "\n";
  for (const Match& match : std::initializer_list<Match>{
           InterfaceMatch{InterfaceDirection::in, "eth0", false},
           InterfaceMatch{InterfaceDirection::out, "e\x1b", true},
           AddressMatch{End::source, {range("10.0.0.0/8")}, false},
           AddressMatch{End::destination, {range("fd00::/8"), range("::1")}, true},
           ProtocolMatch{Protocol::icmpv6, false},
           ProtocolMatch{static_cast<Protocol>(132), true},
           PortMatch{End::source, {{53, 53}}, true},
           PortMatch{End::destination, {{80, 90}}, false},
           PortMatch{End::destination, {{80, 90}, {443, 443}}, true},
           OwnerMatch{OwnerKind::uid, {{0, 0}}, true},
           OwnerMatch{OwnerKind::gid, {{5, 9}, {11, 11}}, false},
           ConntrackStateMatch{31, false},
           ConntrackStateMatch{ConntrackStateMatch::related | ConntrackStateMatch::established, true},
           ConntrackStateMatch{ConntrackStateMatch::invalid, false},
           ConntrackDirectionMatch{true},
           ConntrackDirectionMatch{false},
           MarkMatch{1337, ~0U, false},
           MarkMatch{0x10, 0xf0, true},
           ConnmarkMatch{7, ~0U, true},
           ConnmarkMatch{1, 1, false},
           SocketMatch{},
           SocketMatch{true},
           SetMatch{End::destination, "probes", 3, {}, false},
           SetMatch{End::source, "", 3, {}, true},
           CgroupMatch{"a/b", 0, false},
           CgroupMatch{"a 'b'\\", 0, true},
           CgroupMatch{"a\"\t", 0, false},
           CgroupMatch{"", 77, true},
           CommentMatch{"plain_Words-09"},
           CommentMatch{""},
           CommentMatch{"it's a \"quote\"\x1b"},
           CommentMatch{"{zero}"},
           CommentMatch{"[`@"},
           UnknownMatch{"-m bpf \x1b"},
       })
    all += iptables_words(match) + "\n";
  EXPECT_EQ(all, R"(
-i eth0
! -o e\x1b
-s 10.0.0.0/8
! -d fd00::/8,::1/128
-p ipv6-icmp
! -p 132
! --sport 53
--dport 80:90
-m multiport ! --dports 80:90,443
-m owner ! --uid-owner 0
-m owner --gid-owner 5-9,11
-m conntrack --ctstate INVALID,NEW,RELATED,ESTABLISHED,UNTRACKED
-m conntrack ! --ctstate RELATED,ESTABLISHED
-m conntrack --ctstate INVALID
-m conntrack --ctdir REPLY
-m conntrack --ctdir ORIGINAL
-m mark --mark 1337
-m mark ! --mark 0x10/0xf0
-m connmark ! --mark 7
-m connmark --mark 0x1/0x1
-m owner --socket-exists
-m owner ! --socket-exists
-m set --match-set probes dst
-m set ! --match-set [number 3] src
-m cgroup --path a/b
-m cgroup ! --path "a \'b\'\\"
-m cgroup --path "a\"\x09"
! [cgroup 77, whose path is not known]
-m comment --comment plain_Words-09
-m comment --comment ""
-m comment --comment "it\'s a \"quote\"\x1b"
-m comment --comment "{zero}"
-m comment --comment "[`@"
-m bpf \x1b
)");
}

TEST(IptablesWords, OfEachTarget) {
  std::string all = "\n";
  for (const Target& target : std::initializer_list<Target>{Verdict::accept,
                                                            Verdict::drop,
                                                            Verdict::return_,
                                                            Jump{"CHAIN"},
                                                            Jump{"C\x1b", true},
                                                            Redirect{15001},
                                                            Tproxy{15006, 1337, ~0U},
                                                            Tproxy{15006, 1, 0xff},
                                                            SetMark{7, ~0U},
                                                            SetMark{0x10, 0xf0},
                                                            Connmark::save,
                                                            Connmark::restore,
                                                            CtZone{2},
                                                            NonTerminating{"-j LOG"},
                                                            SetConnmark{1, 0xff},
                                                            SetConnmark{7, ~0U},
                                                            Notrack{},
                                                            Reject{"-j REJECT --reject-with tcp-reset"},
                                                            source_nat(*Address::parse("10.0.0.1")),
                                                            UnknownTarget{"-j QUEUE\n"}})
    all += iptables_words(target) + "\n";
  EXPECT_EQ(all, R"(
-j ACCEPT
-j DROP
-j RETURN
-j CHAIN
-g C\x1b
-j REDIRECT --to-ports 15001
-j TPROXY --tproxy-mark 1337/0xffffffff --on-port 15006
-j TPROXY --tproxy-mark 1/0xff --on-port 15006
-j MARK --set-mark 7
-j MARK --set-xmark 0x10/0xf0
-j CONNMARK --save-mark
-j CONNMARK --restore-mark
-j CT --zone 2
-j LOG
-j CONNMARK --set-xmark 0x1/0xff
-j CONNMARK --set-xmark 0x7/0xffffffff
-j CT --notrack
-j REJECT --reject-with tcp-reset
-j SNAT --to-source 10.0.0.1
-j QUEUE\x0a
)");
}

TEST(IptablesWords, OfRules) {
  Rule rule{Families::both(), Table::nat, "C\n", {ProtocolMatch{Protocol::tcp, false}}, NonTerminating{}, {}, {}};
  EXPECT_EQ(iptables_words(rule), "-A C\\x0a -p tcp");
  rule.insert_at = 3;
  rule.matches.emplace_back(PortMatch{End::destination, {{80, 80}}, false});
  rule.target = Verdict::drop;
  EXPECT_EQ(iptables_words(rule), "-I C\\x0a 3 -p tcp --dport 80 -j DROP");
}

TEST(IptablesWords, OfRulesetsAreOfOneFamily) {
  Ruleset rules;
  const auto add = [&](Families families, Table table, const char* chain, Target target) {
    rules.rules.push_back({families, table, chain, {}, std::move(target), {}, {}});
  };
  add(Family::ipv6, Table::raw, "OUTPUT", CtZone{1});
  add(Families::both(), Table::nat, "OUTPUT", Jump{"ISTIO_OUTPUT"});
  add(Family::ipv4, Table::nat, "ISTIO_OUTPUT", Jump{"ISTIO_REDIRECT"});
  add(Family::ipv4, Table::mangle, "PREROUTING", Verdict::accept);
  EXPECT_EQ("\n" + iptables_restore(rules, Family::ipv4), R"(
*mangle
-A PREROUTING -j ACCEPT
COMMIT
*nat
-N ISTIO_OUTPUT
-N ISTIO_REDIRECT
-A OUTPUT -j ISTIO_OUTPUT
-A ISTIO_OUTPUT -j ISTIO_REDIRECT
COMMIT
)");
  EXPECT_EQ("\n" + iptables_restore(rules, Family::ipv6), R"(
*nat
-N ISTIO_OUTPUT
-A OUTPUT -j ISTIO_OUTPUT
COMMIT
*raw
-A OUTPUT -j CT --zone 1
COMMIT
)");
}

TEST(IpWords, OfRoutes) {
  using Kind = NetworkRoute::Kind;
  std::string all = "\n";
  for (const NetworkRoute& route :
       std::initializer_list<NetworkRoute>{{range("0.0.0.0/0"), "eth0"},
                                           {range("::/0"), "lo", Kind::local, 133},
                                           {range("10.0.0.0/8"), "", Kind::unreachable, local_table},
                                           {range("10.2.0.0/16"), "", Kind::blackhole},
                                           {range("10.3.0.0/16"), "", Kind::prohibit},
                                           {range("fd00::/8"), "", Kind::throw_, default_table},
                                           {range("10.1.2.3"), "eth0", Kind::unknown, 7}})
    all += ip_words(route) + "\n";
  EXPECT_EQ(all, R"(
ip route default dev eth0 table main
ip -6 route local default dev lo table 133
ip route unreachable 10.0.0.0/8 table local
ip route blackhole 10.2.0.0/16 table main
ip route prohibit 10.3.0.0/16 table main
ip -6 route throw fd00::/8 table default
ip route 10.1.2.3/32 dev eth0 table 7
)");
}

RoutingRule rule_of(std::uint32_t priority, RoutingRule::Action action, std::uint32_t table) {
  RoutingRule rule;
  rule.priority = priority;
  rule.action = action;
  rule.table = table;
  return rule;
}

TEST(IpWords, OfPolicyRules) {
  using Action = RoutingRule::Action;
  std::string all = "\n";
  for (const RoutingRule& rule : default_rules()) all += ip_words(rule) + "\n";
  for (const Action action :
       {Action::lookup, Action::blackhole, Action::unreachable, Action::prohibit, Action::none, Action::unknown})
    all += ip_words(rule_of(5, action, 77)) + "\n";
  RoutingRule rule = rule_of(100, Action::lookup, main_table);
  rule.family = Family::ipv6;
  rule.inverted = true;
  rule.from = range("fd00::/8");
  all += ip_words(rule) + "\n";
  rule.to = range("fd01::1");
  rule.mark = 0x111;
  rule.mask = 0xfff;
  rule.in = "eth0";
  rule.out = "net1";
  rule.more = "uidrange 1-2";
  rule.suppressed = 0;
  all += ip_words(rule) + "\n";
  rule.inverted = false;
  rule.from.reset();
  rule.mask = ~0U;
  all += ip_words(rule) + "\n";
  EXPECT_EQ(all, R"(
ip rule 0: from all lookup local
ip rule 32766: from all lookup main
ip rule 32767: from all lookup default
ip -6 rule 0: from all lookup local
ip -6 rule 32766: from all lookup main
ip rule 5: from all lookup 77
ip rule 5: from all blackhole
ip rule 5: from all unreachable
ip rule 5: from all prohibit
ip rule 5: from all nop
ip rule 5: from all an action that is not followed
ip -6 rule 100: not from fd00::/8 lookup main
ip -6 rule 100: not from fd00::/8 to fd01::1/128 fwmark 0x111/0xfff iif eth0 oif net1 uidrange 1-2 lookup main suppress_prefixlength 0
ip -6 rule 100: to fd01::1/128 fwmark 273 iif eth0 oif net1 uidrange 1-2 lookup main suppress_prefixlength 0
)");
}

Routing much() {
  Routing routing;
  routing.policy_rules = {{Family::ipv4, 1337, 133}, {Family::ipv6, 0x111, 100, {}, 0xfff, 32764}};
  routing.policy_rules.push_back({Family::ipv4, 7, 9, 50, ~0U, 60});
  routing.local_routes = {{Family::ipv4, 133}, {Family::ipv6, 100}};
  routing.loopback_addresses = {*Address::parse("::6"), *Address::parse("127.0.0.6")};
  return routing;
}

TEST(IpWords, OfCommands) {
  std::string all = "\n";
  for (const std::string& line : ip_commands(much())) all += line + "\n";
  for (const std::string& line : ip_commands(much(), "del")) all += line + "\n";
  EXPECT_EQ(all, R"(
ip rule add fwmark 1337 lookup 133
ip -6 rule add pref 32764 fwmark 0x111/0xfff lookup 100
ip rule add pref 50 fwmark 7 lookup 9
ip route add local default dev lo table 133
ip -6 route add local default dev lo table 100
ip -6 addr add ::6/128 dev lo
ip addr add 127.0.0.6/32 dev lo
ip rule del fwmark 1337 lookup 133
ip -6 rule del pref 32764 fwmark 0x111/0xfff lookup 100
ip rule del pref 50 fwmark 7 lookup 9
ip route del local default dev lo table 133
ip -6 route del local default dev lo table 100
ip -6 addr del ::6/128 dev lo
ip addr del 127.0.0.6/32 dev lo
)");
}

// ---- Where they stand

TEST(Routing, OfAmbientPodsHasZtunnelsMarkAndTable) {
  const PolicyRule own{Family::ipv4, ztunnel_connection_mark, ztunnel_route_table, {}, ztunnel_mask};
  EXPECT_TRUE(is_of_ambient(own));
  for (const auto change : {&PolicyRule::mark, &PolicyRule::table, &PolicyRule::mask}) {
    PolicyRule other = own;
    ++(other.*change);
    EXPECT_FALSE(is_of_ambient(other));
    Routing routing;
    routing.policy_rules = {other};
    EXPECT_FALSE(is_of_ambient(routing));
    routing.local_routes = {{Family::ipv4, 133}};
    EXPECT_FALSE(is_of_ambient(routing));
    routing.local_routes.push_back({Family::ipv4, ztunnel_route_table});
    EXPECT_TRUE(is_of_ambient(routing));
    EXPECT_TRUE(is_of_ambient(Routing{{other, own}, {}, {}}));
  }
  Routing by_agent{{own}, {{Family::ipv4, ztunnel_route_table}}, {}};
  const Routing by_us = by_agent;
  by_agent.policy_rules[0].by_agent = by_agent.local_routes[0].by_agent = true;
  EXPECT_NE(by_agent, by_us);
  EXPECT_EQ(without_origin(by_agent), by_us);
}

TEST(Routing, APolicyRuleMayTakeWhatAnotherIsThereFor) {
  using Action = RoutingRule::Action;
  const PolicyRule marked{Family::ipv4, 1, 133};
  const auto may = [&](std::uint32_t mark, std::uint32_t mask, Action action, std::uint32_t table, bool inverted) {
    RoutingRule rule = rule_of(10, action, table);
    rule.mark = mark;
    rule.mask = mask;
    rule.inverted = inverted;
    return may_divert(rule, marked);
  };
  EXPECT_TRUE(may(0, 0, Action::lookup, main_table, false));
  EXPECT_TRUE(may(1, ~0U, Action::lookup, main_table, false));
  EXPECT_TRUE(may(1, 1, Action::lookup, main_table, false));
  EXPECT_FALSE(may(2, ~0U, Action::lookup, main_table, false));
  EXPECT_TRUE(may(2, ~0U, Action::lookup, main_table, true));
  EXPECT_FALSE(may(0, 0, Action::lookup, local_table, false));
  EXPECT_FALSE(may(0, 0, Action::lookup, 133, false));
  EXPECT_FALSE(may(0, 0, Action::none, main_table, false));
  EXPECT_TRUE(may(0, 0, Action::blackhole, 133, false));
  EXPECT_TRUE(may(0, 0, Action::unknown, local_table, false));
  RoutingRule rule = rule_of(10, Action::lookup, main_table);
  EXPECT_TRUE(goes_before(marked, rule));
  rule.family = Family::ipv6;
  EXPECT_FALSE(may_divert(rule, marked));
  EXPECT_FALSE(goes_before(marked, rule));
  rule = rule_of(0, Action::lookup, main_table);
  EXPECT_FALSE(goes_before(marked, rule)) << "nothing can stand before it";
}

TEST(Routing, APolicyRuleIsAddedBeforeOthersAndNoLaterThanAsked) {
  const PolicyRule anywhere{Family::ipv4, 1, 133};
  const PolicyRule asked{Family::ipv4, 1, 133, {}, ~0U, 50};
  EXPECT_EQ(place_before(anywhere, std::nullopt), std::nullopt);
  EXPECT_EQ(place_before(anywhere, 100U), 99U);
  EXPECT_EQ(place_before(asked, std::nullopt), 50U);
  EXPECT_EQ(place_before(asked, 100U), 50U);
  EXPECT_EQ(place_before(asked, 20U), 19U);
}

TEST(Routing, IsAddedToAPodAsTheKernelWould) {
  PodView pod;
  pod.interfaces = {{"lo", {}}, {"eth0", {}}};
  pod.rules.insert(pod.rules.begin() + 1, rule_of(100, RoutingRule::Action::lookup, main_table));
  pod.rules.insert(pod.rules.begin() + 1, rule_of(90, RoutingRule::Action::lookup, local_table));
  add(pod, much());
  std::string all = "\n";
  for (const RoutingRule& rule : pod.rules) all += ip_words(rule) + (rule.ours ? " (ours)\n" : "\n");
  for (const NetworkRoute& route : pod.routes) all += ip_words(route) + "\n";
  for (const Interface& interface : pod.interfaces) {
    for (const InterfaceAddress& own : interface.addresses)
      all += fmt::format("{} {}/{}\n", interface.name, own.address.text(), own.prefix_length);
  }
  EXPECT_EQ(all, R"(
ip rule 0: from all lookup local
ip rule 60: fwmark 7 lookup 9 (ours)
ip rule 90: from all lookup local
ip rule 99: fwmark 1337 lookup 133 (ours)
ip rule 100: from all lookup main
ip rule 32766: from all lookup main
ip rule 32767: from all lookup default
ip -6 rule 0: from all lookup local
ip -6 rule 32764: fwmark 0x111/0xfff lookup 100 (ours)
ip -6 rule 32766: from all lookup main
ip route local default dev lo table 133
ip -6 route local default dev lo table 100
lo ::6/128
lo 127.0.0.6/32
)");
  drop_our_rules(pod);
  EXPECT_EQ(pod.rules.size(), default_rules().size() + 2);
  EXPECT_EQ(pod.interface("eth0")->name, "eth0");
  EXPECT_EQ(pod.interface("eth1"), nullptr);
}

TEST(PodView, HasEachNextHopAsTheFirstOneInTurn) {
  PodView pod;
  pod.routes = {{*AddressRange::parse("0.0.0.0/0"), "eth0"}, {*AddressRange::parse("10.0.0.0/8"), "eth0"}};
  EXPECT_EQ(by_each_hop(pod), std::vector{pod});
  pod.routes[0].other_devices = {"net1", "net2"};
  pod.routes[1].other_devices = {"net3"};
  std::string all;
  for (const PodView& each : by_each_hop(pod)) {
    for (const NetworkRoute& route : each.routes) all += route.device + " ";
  }
  EXPECT_EQ(all, "eth0 eth0 net1 net3 net2 eth0 ");
}

TEST(Hook, OfEachBuiltInChain) {
  std::string all = "\n";
  for (const Table table : {Table::raw, Table::mangle, Table::nat, Table::filter, Table::security, Table::other}) {
    for (const Hook hook : all_hooks) {
      const auto point = builtin_hook(table, name(hook));
      EXPECT_EQ(hook_named(name(hook)), hook);
      if (!point) continue;
      EXPECT_EQ(point->hook, hook);
      all += fmt::format("{} {} {} {}\n", name(table), name(hook), point->priority, name(point->type));
    }
  }
  EXPECT_EQ(builtin_hook(Table::nat, "ISTIO_OUTPUT"), std::nullopt);
  EXPECT_EQ(hook_named("output"), std::nullopt);
  EXPECT_EQ(all, R"(
raw PREROUTING -300 filter
raw OUTPUT -300 filter
mangle PREROUTING -150 filter
mangle INPUT -150 filter
mangle FORWARD -150 filter
mangle OUTPUT -150 route
mangle POSTROUTING -150 filter
nat PREROUTING -100 nat
nat INPUT 100 nat
nat OUTPUT -100 nat
nat POSTROUTING 100 nat
filter INPUT 0 filter
filter FORWARD 0 filter
filter OUTPUT 0 filter
security INPUT 50 filter
security FORWARD 50 filter
security OUTPUT 50 filter
)");
}

TEST(Address, OfIpv4InIpv6) {
  EXPECT_EQ(Address::parse("::ffff:10.1.2.3")->unmapped(), Address::parse("10.1.2.3"));
  for (const char* other : {"::fffe:10.1.2.3", "1::ffff:10.1.2.3", "::1:ffff:10.1.2.3", "::10.1.2.3", "10.1.2.3",
                            "0:0:0:0:100:ffff:a01:203"})
    EXPECT_EQ(Address::parse(other)->unmapped(), std::nullopt) << other;
}

}  // namespace
}  // namespace sidetrack
