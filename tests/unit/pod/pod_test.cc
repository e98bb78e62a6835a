// SPDX-License-Identifier: GPL-2.0-or-later
// Policy rules and routes: their words, and where they stand.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pod/pod_view.h"
#include "pod/ztunnel.h"
#include "unit/usual_config.h"

namespace sidetrack {
namespace {

AddressRange range(const char* text) { return *AddressRange::parse(text); }

TEST(IpWords, OfRoutes) {
  using Kind = Route::Kind;
  std::string all = "\n";
  for (const Route& route : std::initializer_list<Route>{{range("0.0.0.0/0"), "eth0"},
                                                         {range("::/0"), "lo", Kind::local, 133},
                                                         {range("10.0.0.0/8"), "", Kind::unreachable, local_table},
                                                         {range("10.2.0.0/16"), "", Kind::blackhole},
                                                         {range("10.3.0.0/16"), "", Kind::prohibit},
                                                         {range("fd00::/8"), "", Kind::throw_, default_table},
                                                         {range("10.1.2.3"), "eth0", Kind::unknown, 7}})
    all += ip_words(route) + "\n";
  Route other{range("2001:db8::/32"), "lo", Kind::unknown};
  other.type = "unreachable";
  other.more = "from fd00:1::/64";
  all += ip_words(other) + "\n";
  EXPECT_EQ(all, R"(
ip route default dev eth0 table main
ip -6 route local default dev lo table 133
ip route unreachable 10.0.0.0/8 table local
ip route blackhole 10.2.0.0/16 table main
ip route prohibit 10.3.0.0/16 table main
ip -6 route throw fd00::/8 table default
ip route 10.1.2.3/32 dev eth0 table 7
ip -6 route unreachable 2001:db8::/32 from fd00:1::/64 dev lo table main
)");
}

PolicyRule rule_of(std::uint32_t priority, PolicyRule::Action action, std::uint32_t table) {
  PolicyRule rule;
  rule.priority = priority;
  rule.action = action;
  rule.table = table;
  return rule;
}

TEST(IpWords, OfPolicyRules) {
  using Action = PolicyRule::Action;
  std::string all = "\n";
  for (const PolicyRule& rule : default_rules()) all += ip_words(rule) + "\n";
  for (const Action action :
       {Action::lookup, Action::blackhole, Action::unreachable, Action::prohibit, Action::none, Action::unknown})
    all += ip_words(rule_of(5, action, 77)) + "\n";
  PolicyRule rule = rule_of(100, Action::lookup, main_table);
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
  routing.policy_rules = {fwmark_rule(Family::ipv4, 1337, 133),
                          placed(fwmark_rule(Family::ipv6, 0x111, 100, 0xfff), 32764, true),
                          placed(fwmark_rule(Family::ipv4, 7, 9), 50, false)};
  routing.local_routes = {local_default(Family::ipv4, 133), local_default(Family::ipv6, 100)};
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
  const PolicyRule own = fwmark_rule(Family::ipv4, ztunnel_connection_mark, ztunnel_route_table, ztunnel_mask);
  EXPECT_TRUE(is_of_ambient(own));
  for (const auto change : {&PolicyRule::mark, &PolicyRule::table, &PolicyRule::mask}) {
    PolicyRule other = own;
    ++(other.*change);
    EXPECT_FALSE(is_of_ambient(other));
    Routing routing;
    routing.policy_rules = {other};
    EXPECT_FALSE(is_of_ambient(routing));
    routing.local_routes = {local_default(Family::ipv4, 133)};
    EXPECT_FALSE(is_of_ambient(routing));
    routing.local_routes.push_back(local_default(Family::ipv4, ztunnel_route_table));
    EXPECT_TRUE(is_of_ambient(routing));
    EXPECT_TRUE(is_of_ambient(Routing{{other, own}, {}, {}}));
  }
  Routing by_agent{{own}, {local_default(Family::ipv4, ztunnel_route_table)}, {}};
  const Routing by_us = by_agent;
  by_agent.policy_rules[0].origin = by_agent.local_routes[0].origin = RoutingOrigin::agent;
  EXPECT_NE(by_agent, by_us);
  EXPECT_EQ(without_origin(by_agent), by_us);
}

TEST(Routing, APolicyRuleMayTakeWhatAnotherIsThereFor) {
  using Action = PolicyRule::Action;
  const PolicyRule marked = fwmark_rule(Family::ipv4, 1, 133);
  const auto may = [&](std::uint32_t mark, std::uint32_t mask, Action action, std::uint32_t table, bool inverted) {
    PolicyRule rule = rule_of(10, action, table);
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
  PolicyRule rule = rule_of(10, Action::lookup, main_table);
  EXPECT_TRUE(goes_before(marked, rule));
  rule.family = Family::ipv6;
  EXPECT_FALSE(may_divert(rule, marked));
  EXPECT_FALSE(goes_before(marked, rule));
  rule = rule_of(0, Action::lookup, main_table);
  EXPECT_FALSE(goes_before(marked, rule)) << "nothing can stand before it";
}

TEST(Routing, APolicyRuleIsAddedBeforeOthersAndNoLaterThanAsked) {
  const PolicyRule anywhere = fwmark_rule(Family::ipv4, 1, 133);
  const PolicyRule asked = placed(anywhere, 50, true);
  EXPECT_EQ(place_before(anywhere, std::nullopt), std::nullopt);
  EXPECT_EQ(place_before(anywhere, 100U), 99U);
  EXPECT_EQ(place_before(asked, std::nullopt), 50U);
  EXPECT_EQ(place_before(asked, 100U), 50U);
  EXPECT_EQ(place_before(asked, 20U), 19U);
}

TEST(Routing, IsAddedToAPodAsTheKernelWould) {
  PodView pod;
  pod.interfaces = {{"lo", {}}, {"eth0", {}}};
  pod.rules.insert(pod.rules.begin() + 1, rule_of(100, PolicyRule::Action::lookup, main_table));
  pod.rules.insert(pod.rules.begin() + 1, rule_of(90, PolicyRule::Action::lookup, local_table));
  add_routing(pod, much());
  std::string all = "\n";
  for (const PolicyRule& rule : pod.rules) all += ip_words(rule) + (rule.is_ours() ? " (ours)\n" : "\n");
  for (const Route& route : pod.routes) all += ip_words(route) + "\n";
  for (const Interface& interface : pod.interfaces) {
    for (const InterfaceAddress& own : interface.addresses)
      all += fmt::format("{} {}/{}\n", interface.name, own.address.text(), own.prefix_length);
  }
  EXPECT_EQ(all, R"(
ip rule 0: from all lookup local
ip rule 50: fwmark 7 lookup 9 (ours)
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

TEST(Routing, ThePlaceCountsUnlessItIsBeforeOthers) {
  const PolicyRule rule = fwmark_rule(Family::ipv4, 1, 133);
  EXPECT_EQ(rule, placed(rule, 50, true));
  EXPECT_NE(rule, placed(rule, 50, false));
  EXPECT_NE(placed(rule, 50, false), placed(rule, 60, false));
}

TEST(PodView, HasEachNextHopAsTheFirstOneInTurn) {
  PodView pod;
  pod.routes = {{*AddressRange::parse("0.0.0.0/0"), "eth0"}, {*AddressRange::parse("10.0.0.0/8"), "eth0"}};
  EXPECT_EQ(by_each_hop(pod), std::vector{pod});
  pod.routes[0].other_devices = {"net1", "net2"};
  pod.routes[1].other_devices = {"net3"};
  std::string all;
  for (const PodView& each : by_each_hop(pod)) {
    for (const Route& route : each.routes) all += route.device + " ";
  }
  EXPECT_EQ(all, "eth0 eth0 net1 net3 net2 eth0 ");
}

}  // namespace
}  // namespace sidetrack
