// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>
#include <linux/rtnetlink.h>

#include <functional>

#include "kernel/routes/live.h"

namespace sidetrack::routes {
namespace {

// Of /proc/net/fib_trie.
TEST(ListedRoutes, TellWhetherTablesLocalAndMainAreApart) {
  const std::string trie = "  +-- 127.0.0.0/8 2 0 2\n     |-- 127.0.0.1\n        /32 host LOCAL\n";
  const std::string main = "  |-- 0.0.0.0\n     /0 universe UNICAST\n";
  EXPECT_EQ(tables_are_apart("Main:\n" + trie + "Local:\n" + trie), false);
  EXPECT_EQ(tables_are_apart("Id 77:\n" + main + "Main:\n" + trie + "Local:\n" + trie + "Id 99:\n" + main), false);
  EXPECT_EQ(tables_are_apart("Main:\n" + main + "Local:\n" + trie), true);
  EXPECT_EQ(tables_are_apart("Local:\n" + trie), true);
  EXPECT_EQ(tables_are_apart(""), std::nullopt);
  EXPECT_EQ(tables_are_apart("Main:\n"), std::nullopt);
  EXPECT_EQ(tables_are_apart("Main:\nLocal:\n "), true);  // cut
}

ListedRule plain_rule() {
  ListedRule rule;
  rule.rule.mark = 0x111;
  rule.rule.mask = 0xfff;
  rule.rule.table = 100;
  return rule;
}

std::optional<PolicyRule> planned(const ListedRule& rule) {
  Everything all;
  all.rules = {rule};
  all.relate();
  return all.rules.front().planned;
}
std::optional<Route> planned(const ListedRoute& route) {
  Everything all;
  all.routes = {route};
  all.relate();
  return all.routes.front().planned;
}

RoutingOrigin origin_of(const ListedRule& rule) {
  Everything all;
  all.rules = {rule};
  all.relate();
  return all.rules.front().rule.origin;
}
RoutingOrigin origin_of(const ListedRoute& route) {
  Everything all;
  all.routes = {route};
  all.relate();
  return all.routes.front().route.origin;
}

TEST(ListedRule, IsPlannedIfItAsksForTheMarkAlone) {
  ASSERT_TRUE(planned(plain_rule()));
  EXPECT_EQ(planned(plain_rule())->mark, 0x111U);
  EXPECT_EQ(planned(plain_rule())->mask, 0xfffU);
  EXPECT_EQ(planned(plain_rule())->table, 100U);
  for (const std::uint32_t mark : {1U, 2U}) {
    ListedRule rule = plain_rule();
    rule.rule.mark = mark;
    rule.rule.mask = 3;
    EXPECT_TRUE(planned(rule)) << mark;
  }
  ListedRule bit = plain_rule();
  bit.rule.mark = bit.rule.mask = 1;
  EXPECT_TRUE(planned(bit));
  const std::function<void(PolicyRule&)> others[] = {
      [](PolicyRule& rule) { rule.action = PolicyRule::Action::prohibit; },
      [](PolicyRule& rule) { rule.inverted = true; },
      [](PolicyRule& rule) { rule.from = AddressRange::parse("10.0.0.0/8"); },
      [](PolicyRule& rule) { rule.to = AddressRange::parse("10.0.0.0/8"); },
      [](PolicyRule& rule) { rule.mark = 0; },
      [](PolicyRule& rule) { rule.mask = 0; },
      [](PolicyRule& rule) { rule.in = "eth0"; },
      [](PolicyRule& rule) { rule.out = "eth0"; },
      [](PolicyRule& rule) { rule.more = "uidrange 1-2"; },
      [](PolicyRule& rule) { rule.suppressed = 0; },
  };
  for (std::size_t i = 0; i < std::size(others); ++i) {
    ListedRule rule = plain_rule();
    others[i](rule.rule);
    EXPECT_FALSE(planned(rule)) << i;
  }
}

TEST(ListedRoute, IsALocalDefaultByLoAlone) {
  ListedRoute route;
  route.route = {*AddressRange::parse("0.0.0.0/0"), "", Route::Kind::local, 133};
  route.device = loopback_index;
  EXPECT_EQ(planned(route), local_default(Family::ipv4, 133));
  ListedRoute other = route;
  other.device = 2;
  EXPECT_FALSE(planned(other));
  other = route;
  other.route.kind = Route::Kind::unicast;
  EXPECT_FALSE(planned(other));
  other = route;
  other.route.to = *AddressRange::parse("0.0.0.0/1");
  EXPECT_FALSE(planned(other));
}

// Istio's pair: without a tag, with its mark or its table.
TEST(ListedRule, IsIstiosWithItsMarkOrItsTable) {
  const auto is_ours = [](std::uint32_t mark, std::uint32_t mask, std::uint32_t table, std::uint32_t route_table,
                          std::uint8_t protocol = 0, std::uint8_t route_protocol = 0,
                          AgentRules agent_rules = AgentRules::foreign, Family family = Family::ipv4) {
    Everything all;
    all.claims = {agent_rules, {7}};
    ListedRule rule;
    rule.rule.mark = mark;
    rule.rule.mask = mask;
    rule.rule.table = table;
    rule.rule.family = family;
    rule.protocol = protocol;
    ListedRoute route;
    route.route = {*AddressRange::parse("0.0.0.0/0"), "", Route::Kind::local, route_table};
    route.device = loopback_index;
    route.protocol = route_protocol;
    all.rules.push_back(rule);
    all.routes.push_back(route);
    all.relate();
    EXPECT_EQ(all.rules.front().rule.origin, all.routes.front().route.origin);
    return all.rules.front().rule.is_ours();
  };
  EXPECT_TRUE(is_ours(1337, 0xffffffff, 133, 133));
  EXPECT_TRUE(is_ours(1, 0xffffffff, 133, 133));
  EXPECT_TRUE(is_ours(1337, 0xffffffff, 5, 5));
  EXPECT_FALSE(is_ours(1, 0xffffffff, 5, 5));
  EXPECT_TRUE(is_ours(7, 0xffffffff, 5, 5)) << "Istio's own rules set that mark";
  EXPECT_FALSE(is_ours(7, 0xff, 5, 5));
  EXPECT_FALSE(is_ours(1337, 0xfff, 133, 133));
  EXPECT_FALSE(is_ours(1337, 0xffffffff, 133, 134));
  EXPECT_FALSE(is_ours(1337, 0xffffffff, 133, 133, 17));
  EXPECT_FALSE(is_ours(1337, 0xffffffff, 133, 133, 0, 17)) << "another program's route";
  EXPECT_TRUE(is_ours(1337, 0xffffffff, 133, 133, RTPROT_BOOT, RTPROT_STATIC));
  EXPECT_TRUE(is_ours(1337, 0xffffffff, 133, 133, RTPROT_STATIC, RTPROT_BOOT));
  EXPECT_FALSE(is_ours(1337, 0xffffffff, 133, 133, RTPROT_KERNEL, 0));
  EXPECT_FALSE(is_ours(1337, 0xffffffff, 133, 133, 0, 0, AgentRules::foreign, Family::ipv6)) << "of two families";
  EXPECT_TRUE(is_ours(1337, 0xffffffff, 133, 133, 0, 0, AgentRules::ours));
  EXPECT_FALSE(is_ours(0x111, 0xfff, 100, 100)) << "an agent's";
  EXPECT_TRUE(is_ours(0x111, 0xfff, 100, 100, 0, 0, AgentRules::ours));
  EXPECT_FALSE(is_ours(0x111, 0xfff, 100, 100, 0, 17, AgentRules::ours));
}

// What somebody made with our protocol is ours only if it is what Sidetrack makes.
TEST(ListedRoute, OfOurProtocolIsOursIfItIsALocalDefault) {
  ListedRoute route;
  route.route = {*AddressRange::parse("0.0.0.0/0"), "", Route::Kind::local, 133};
  route.device = loopback_index;
  route.protocol = our_protocol;
  EXPECT_EQ(origin_of(route), RoutingOrigin::ours);
  route.route.kind = Route::Kind::unicast;
  EXPECT_EQ(origin_of(route), RoutingOrigin::other);
  ListedRule rule;
  rule.rule.mark = 7;
  rule.rule.mask = 0xffffffff;
  rule.rule.table = 133;
  rule.protocol = our_protocol;
  EXPECT_EQ(origin_of(rule), RoutingOrigin::ours);
  rule.rule.mask = 0;
  EXPECT_EQ(origin_of(rule), RoutingOrigin::other);
}

// A rule of ours that comes after another one that takes the same packets has no effect there.
TEST(Everything, TellsWhatIsThereAsItWouldBeAskedFor) {
  Everything all;
  ListedRule other;
  other.rule.priority = 100;
  other.rule.table = 77;
  ListedRule ours = plain_rule();
  ours.protocol = our_protocol;
  ours.rule.priority = 200;
  all.rules = {ours, other, ours};
  all.rules.back().rule.mark = 0x222;
  all.relate();
  ASSERT_TRUE(all.rules[0].planned);
  EXPECT_TRUE(all.rules[0].planned->before_others);
  EXPECT_EQ(all.rules[1].planned, std::nullopt);
  ASSERT_TRUE(all.rules[2].planned);
  EXPECT_TRUE(all.rules[2].planned->before_others) << "of an empty table";
  ListedRoute of_other;
  of_other.route = {*AddressRange::parse("0.0.0.0/0"), "", Route::Kind::unicast, 77};
  all.routes = {of_other};
  all.relate();
  EXPECT_FALSE(all.rules[2].planned->before_others);
  EXPECT_EQ(all.rules[2].planned->priority, 200U);
  EXPECT_TRUE(all.holds(*all.rules[0].planned));
  EXPECT_TRUE(all.holds(*all.rules[2].planned));
  PolicyRule elsewhere = *all.rules[0].planned;
  elsewhere.table = 101;
  EXPECT_FALSE(all.holds(elsewhere));

  ListedRoute route;
  route.route = {*AddressRange::parse("::/0"), "", Route::Kind::local, 133};
  route.device = loopback_index;
  all.routes = {route};
  all.relate();
  EXPECT_TRUE(all.holds(local_default(Family::ipv6, 133)));
  EXPECT_FALSE(all.holds(local_default(Family::ipv4, 133)));
  EXPECT_FALSE(all.holds(local_default(Family::ipv6, 134)));

  // Of lo, and of a single host.
  const Address one = *Address::parse("10.0.0.1"), two = *Address::parse("10.0.0.2"), three = *Address::parse("::6");
  all.addresses = {{{one, 32}, loopback_index}, {{two, 8}, loopback_index}, {{three, 128}, 2}};
  EXPECT_EQ(all.loopback_hosts(), std::vector{one});
  EXPECT_TRUE(all.holds(one));
  EXPECT_FALSE(all.holds(two));
  EXPECT_FALSE(all.holds(three));
}

}  // namespace
}  // namespace sidetrack::routes
