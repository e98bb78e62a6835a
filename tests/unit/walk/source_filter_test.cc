// SPDX-License-Identifier: GPL-2.0-or-later
// net.ipv4.conf.*.rp_filter of a pod with two interfaces: what comes in by the one, and whose answers leave by the
// other.
#include <gtest/gtest.h>

#include "unit/asking.h"
#include "unit/live_rules.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

constexpr const char* lands = "lands on 192.0.2.2:8080 (the app), untouched";
constexpr const char* by_net1 = "in tcp 192.0.2.2:8080 --from 10.1.2.3 --in-interface net1";
constexpr const char* by_eth0 = "in tcp 192.0.2.2:8080 --from 10.1.2.3";

class SourceFilterOf : public ::testing::Test {
 protected:
  SourceFilterOf() : plan_(planned("")), pod_(assumed_pod(plan_)) {
    std::erase_if(pod_.interfaces, [](const Interface& interface) { return interface.name == "net1"; });
    pod_.interfaces.push_back({"net1", {{*Address::parse("198.51.100.2"), 24}}});
    pod_.routes.push_back({*AddressRange::parse("198.51.100.0/24"), "net1"});
  }

  // Without what is said of the answers.
  [[nodiscard]] std::string end(const char* packet) const {
    const Live live[] = {as_live(plan_.ruleset, BackendKind::iptables_nft)};
    const std::string said = sentence(explain(packet_of(packet), pod_, live).outcome);
    return said.substr(0, said.find("; "));
  }
  void set_all(RpFilter filter) {
    for (Interface& interface : pod_.interfaces) interface.rp_filter = filter;
  }
  Interface& net1() { return *pod_.interface("net1"); }
  Route& add_route(const char* to, const char* device, Route::Kind kind, std::uint32_t table = main_table) {
    return *pod_.routes.insert(pod_.routes.begin(), {*AddressRange::parse(to), device, kind, table});
  }
  // Before all but the first: which packets look up table 200.
  PolicyRule& add_rule() {
    PolicyRule rule;
    rule.priority = 100;
    rule.table = 200;
    return *pod_.rules.insert(pod_.rules.begin() + 1, rule);
  }

  Plan plan_;
  PodView pod_;
};

TEST_F(SourceFilterOf, Settings) {
  EXPECT_EQ(end(by_net1), lands);
  net1().rp_filter = RpFilter::strict;
  EXPECT_EQ(end(by_net1), "dropped: rp_filter of net1 is 1, and the way back to 10.1.2.3 is by eth0");
  EXPECT_EQ(end(by_eth0), lands);
  set_all(RpFilter::loose);
  EXPECT_EQ(end(by_net1), lands);
  set_all(RpFilter::strict);
  EXPECT_EQ(end(by_net1), "dropped: rp_filter of net1 is 1, and the way back to 10.1.2.3 is by eth0");
  EXPECT_EQ(end(by_eth0), lands);
  EXPECT_EQ(end("in udp 192.0.2.2:8080 --from 198.51.100.7 --in-interface net1"), lands) << "of its own network";
  EXPECT_EQ(end("in tcp [2001:db8::2]:8080 --from fd00:1::3 --in-interface net1"),
            "lands on [2001:db8::2]:8080 (the app), untouched");
}

TEST_F(SourceFilterOf, RoutesBack) {
  set_all(RpFilter::strict);
  add_route("10.1.2.0/24", "net1", Route::Kind::unicast);
  EXPECT_EQ(end(by_net1), lands);
  EXPECT_EQ(end(by_eth0), "dropped: rp_filter of eth0 is 1, and the way back to 10.1.2.3 is by net1");
  pod_.routes.front() = {*AddressRange::parse("10.1.2.0/24"), "", Route::Kind::unreachable};
  for (const RpFilter filter : {RpFilter::strict, RpFilter::loose}) {
    set_all(filter);
    const std::string number = filter == RpFilter::strict ? "1" : "2";
    EXPECT_EQ(end(by_net1), "dropped: rp_filter of net1 is " + number +
                                ", and there is no route to 10.1.2.3 (ip route unreachable 10.1.2.0/24 table main)");
  }
  set_all(RpFilter::off);
  EXPECT_EQ(end(by_net1), lands);
  set_all(RpFilter::loose);
  pod_.routes.front().kind = Route::Kind::unknown;
  EXPECT_EQ(end(by_net1),
            "unknown: the route back to 10.1.2.3, and rp_filter of net1 is 2: `ip route 10.1.2.0/24 table main`");
}

TEST_F(SourceFilterOf, AnInterfaceWithoutAnAddressTakesNoOther) {
  net1().addresses.clear();
  net1().rp_filter = RpFilter::loose;
  EXPECT_EQ(end(by_net1), "dropped: rp_filter of net1 is 2, and the way back to 10.1.2.3 is by eth0");
  add_route("10.1.2.0/24", "net1", Route::Kind::unicast);
  EXPECT_EQ(end(by_net1), lands);
}

// The source is looked up without the packet's mark, unless src_valid_mark is set; from the packet's destination.
TEST_F(SourceFilterOf, PolicyRules) {
  set_all(RpFilter::strict);
  add_route("0.0.0.0/0", "net1", Route::Kind::unicast, 200);
  PolicyRule& rule = add_rule();
  rule.from = AddressRange::parse("192.0.2.2/32");
  EXPECT_EQ(end(by_net1), lands);
  rule.from = AddressRange::parse("10.1.2.3/32");
  EXPECT_EQ(end(by_net1), "dropped: rp_filter of net1 is 1, and the way back to 10.1.2.3 is by eth0");
  rule.from.reset();
  rule.mark = rule.mask = 7;
  const std::string marked = std::string(by_net1) + " --mark 7";
  EXPECT_EQ(end(marked.c_str()), "dropped: rp_filter of net1 is 1, and the way back to 10.1.2.3 is by eth0");
  net1().src_valid_mark = true;
  EXPECT_EQ(end(marked.c_str()), lands);
  EXPECT_EQ(end(by_net1), "dropped: rp_filter of net1 is 1, and the way back to 10.1.2.3 is by eth0");
}

// Whatever rp_filter is, if there are routes of type local beside the own addresses.
TEST_F(SourceFilterOf, ASourceThatARouteCallsLocalIsRefused) {
  add_route("10.1.2.0/24", "lo", Route::Kind::local, 200);
  EXPECT_EQ(end(by_net1), lands);
  PolicyRule& rule = add_rule();
  EXPECT_EQ(end(by_net1), "dropped: 10.1.2.3 cannot come in by net1 (martian)");
  rule.mark = rule.mask = 7;
  EXPECT_EQ(end(by_net1), lands);
}

TEST_F(SourceFilterOf, WithoutAWayBack) {
  std::erase_if(pod_.routes, [](const Route& route) { return route.device == "eth0"; });
  EXPECT_EQ(end(by_eth0), lands);
  for (const RpFilter filter : {RpFilter::strict, RpFilter::loose}) {
    set_all(filter);
    EXPECT_EQ(end(by_eth0), filter == RpFilter::strict
                                ? "dropped: rp_filter of eth0 is 1, and there is no route to 10.1.2.3"
                                : "dropped: rp_filter of eth0 is 2, and there is no route to 10.1.2.3");
    EXPECT_EQ(end("in tcp 192.0.2.2:8080 --from 198.51.100.7 --in-interface net1"), lands);
  }
  add_route("10.0.0.0/8", "", Route::Kind::unreachable);
  EXPECT_EQ(end(by_eth0),
            "dropped: rp_filter of eth0 is 2, and there is no route to 10.1.2.3 (ip route unreachable 10.0.0.0/8 table "
            "main)");
}

}  // namespace
}  // namespace sidetrack
