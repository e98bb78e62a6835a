// SPDX-License-Identifier: GPL-2.0-or-later
// Policy rules, routes and bridges of other programs below the rules as requested: where connections land then, what
// explain says, and that verify is 0 if and only if both ways still lead to the proxy.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "model/scan.h"
#include "support/network.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* tproxy = "-p 15001 -z 15006 -u 1337 -m TPROXY -i * -x -b * -d 15090,15021,15020";

class RoutingEdits : public Traffic {
 protected:
  RoutingEdits() : RoutingEdits(false) {}
  explicit RoutingEdits(bool transparent) : Traffic(Pod::Options{.transparent_proxy = transparent}) {}

  [[nodiscard]] std::string filled_in(std::string_view commands) const {
    return fmt::format(fmt::runtime(commands), fmt::arg("ip", family() == Family::ipv4 ? "ip" : "ip -6"),
                       fmt::arg("pod", at().pod), fmt::arg("client", at().client),
                       fmt::arg("loopback", at().any_loopback), fmt::arg("service", at().service),
                       fmt::arg("all", family() == Family::ipv4 ? "127.0.0.0/8" : "::1"));
  }
  void edit(std::string_view commands) const { pod_->ns().must({"sh", "-ec", filled_in(commands)}); }

  [[nodiscard]] std::string explained(const char* way, const Endpoint& to) const {
    std::vector<std::string> words{program_under_test(), "explain", way, "tcp", to.text(), "--brief"};
    if (std::string_view(way) == "out") words.insert(words.end(), {"--uid", "1000"});
    if (std::string_view(way) == "in") words.insert(words.end(), {"--from", std::string(at().client)});
    return pod_->ns().program(words).out;
  }
  [[nodiscard]] Output verified(std::string_view options) const {
    std::vector<std::string> words{program_under_test(), "verify", "--ip-families", "ipv4,ipv6"};
    for (const std::string_view word : split_words(options)) words.emplace_back(word);
    return pod_->ns().program(words);
  }
};
INSTANTIATE_TEST_SUITE_P(, RoutingEdits, settings(), setting_name);

struct Edit {
  const char* what;
  std::string_view done, undone;
  bool is_lost_out, is_lost_in;
};
constexpr Edit edits[] = {
    // IPv6 asks the rules only once one was added.
    {"table local is not looked up", "{ip} rule add pref 6 lookup main; {ip} rule del pref 6; {ip} rule del pref 0",
     "{ip} rule add pref 0 lookup local", true, true},
    {"it is looked up later", "{ip} rule add pref 5 lookup local; {ip} rule del pref 0",
     "{ip} rule add pref 0 lookup local; {ip} rule del pref 5", false, false},
    // The rest of its network still is; ::1 has none.
    {"127.0.0.1 alone is not local", "[ {loopback} = ::1 ] || ip route del local 127.0.0.1 dev lo table local",
     "[ {loopback} = ::1 ] || ip route add local 127.0.0.1 dev lo table local proto kernel", false, false},
    {"no address of loopback is local",
     "{ip} route del local {loopback} dev lo table local; {ip} route del local {all} dev lo table local || true",
     "{ip} route add local {all} dev lo table local proto kernel", true, false},
    {"127.0.0.1 has another route than its network",
     "{ip} route del local {loopback} dev lo table local || true; {ip} route add blackhole {loopback} table local",
     "{ip} route del blackhole {loopback} table local; {ip} route add local {loopback} dev lo table local proto kernel",
     true, false},
    {"127.0.0.1 goes out by eth0",
     "{ip} route del local {loopback} dev lo table local || true; {ip} route add {loopback} dev eth0 table local",
     "{ip} route del {loopback} dev eth0 table local; {ip} route add local {loopback} dev lo table local proto kernel",
     true, false},
    {"a route by a next hop object, of which only the number is told",
     "sysctl -qw net.ipv4.nexthop_compat_mode=0; {ip} nexthop add id 1 dev lo; {ip} route add {service} nhid 1",
     "{ip} route del {service}; {ip} nexthop del id 1; sysctl -qw net.ipv4.nexthop_compat_mode=1", true, false},
    {"a host is reached by lo", "sysctl -qw net.ipv4.conf.all.rp_filter=1; {ip} route add {client} dev lo",
     "sysctl -qw net.ipv4.conf.all.rp_filter=0; {ip} route del {client} dev lo", false, true},
    {"the pod's address is not local", "{ip} route del local {pod} dev eth0 table local",
     "{ip} route add local {pod} dev eth0 table local proto kernel", true, true},
    {"a rule looks up an empty table", "{ip} rule add pref 5 lookup 77", "{ip} rule del pref 5", false, false},
};

TEST_P(RoutingEdits, VerifyIsZeroIfBothWaysLeadToTheProxy) {
  apply(injected);
  const auto lands = [&](const Actor& from, const Endpoint& to, Role role) {
    return connect(from, to) == landed(role, original(to));
  };
  for (const Edit& one : edits) {
    SCOPED_TRACE(one.what);
    edit(one.done);
    EXPECT_EQ(lands(as_app, service(80), Role::proxy_outbound), !one.is_lost_out);
    EXPECT_EQ(lands(from_outside, pod(8080), Role::proxy_inbound), !one.is_lost_in);
    const std::string out = explained("out", service(80));
    const std::string in = explained("in", pod(8080));
    EXPECT_EQ(out.find("lands on") == 0 && out.find("replies") == std::string::npos, !one.is_lost_out) << out;
    EXPECT_EQ(in.find("lands on") == 0 && in.find("replies") == std::string::npos, !one.is_lost_in) << in;
    const Output verify = verified(injected);
    EXPECT_EQ(verify.exit_code, one.is_lost_out || one.is_lost_in ? 6 : 0) << verify.err;
    edit(one.undone);
    EXPECT_EQ(verified(injected).exit_code, 0);
  }
}

// In IPv4 a route by lo leads to the pod itself, in IPv6 to nobody.
TEST_P(RoutingEdits, RoutesByLo) {
  apply(injected);
  edit("{ip} route add {service} dev lo");
  EXPECT_NE(connect(as_app, service(80)).role, Role::proxy_outbound);
  const std::string out = explained("out", service(80));
  EXPECT_EQ(out.starts_with("lands on"), family() == Family::ipv4) << out;
  EXPECT_EQ(out.starts_with("dropped"), family() == Family::ipv6) << out;
  EXPECT_EQ(verified(injected).exit_code, 6);
}

// IPv4 looks tables local and main up as one until a policy rule is added: the longest prefix of both counts.
TEST_P(RoutingEdits, RoutesOfMainToPartsOfWhatIsLocal) {
  if (family() == Family::ipv6) return;
  apply(injected);
  const auto expect = [&](bool is_captured) {
    EXPECT_EQ(connect(as_app, service(80)).role == Role::proxy_outbound, is_captured);
    const std::string out = explained("out", service(80));
    EXPECT_EQ(out.starts_with("lands on 127.0.0.1:15001"), is_captured) << out;
  };
  edit("ip route add local 10.96.0.0/16 dev lo; ip route add {service} dev eth0");
  expect(true);
  edit("ip rule add pref 5 lookup 77; ip rule del pref 5");
  expect(false);
}

TEST_P(RoutingEdits, RoutesOfMainToPartsOfLoopback) {
  if (family() == Family::ipv6) return;
  apply(injected);
  const auto reaches_itself = [&] { return connect(as_proxy, "127.9.0.5:8080").role == Role::proxy_inbound; };
  EXPECT_TRUE(reaches_itself());
  edit("ip route add 127.9.0.0/16 dev eth0");
  EXPECT_FALSE(reaches_itself());
  EXPECT_EQ(verified(injected).exit_code, 6);
  edit("ip rule add pref 5 lookup 77; ip rule del pref 5");
  EXPECT_TRUE(reaches_itself());
  EXPECT_EQ(verified(injected).exit_code, 0);
}

class RoutingEditsOfMarked : public RoutingEdits {
 protected:
  RoutingEditsOfMarked() : RoutingEdits(true) {}
};
INSTANTIATE_TEST_SUITE_P(, RoutingEditsOfMarked, settings(), setting_name);

TEST_P(RoutingEditsOfMarked, WhatDecidesNothingIsNoDifference) {
  apply(tproxy);
  for (const char* harmless : {"lookup 77", "lookup local", "to 198.51.100.0/24 lookup 77"}) {
    if (family() == Family::ipv6 && std::string_view(harmless).starts_with("to")) continue;
    edit(fmt::format("{{ip}} rule add pref 5 {}", harmless));
    EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::proxy_inbound, local(pod(8080))));
    EXPECT_EQ(verified(tproxy).exit_code, 0) << harmless;
    edit("{ip} rule del pref 5");
  }
  edit("{ip} route add default via {client} table 77; {ip} rule add pref 5 lookup 77");
  EXPECT_EQ(verified(tproxy).exit_code, 6);
}

// What another program leads into the table of marked packets stays in the pod, marked or not.
TEST_P(RoutingEditsOfMarked, WhatOthersLeadIntoTheirTableIsFound) {
  apply(tproxy);
  for (const char* selector : {"from {pod}", "not fwmark 5"}) {
    edit(std::string("{ip} rule add pref 50 ") + selector + " lookup 133");
    EXPECT_NE(connect(from_outside, pod(8080)).role, Role::proxy_inbound) << selector;
    EXPECT_EQ(verified(tproxy).exit_code, 6) << selector;
    edit("{ip} rule del pref 50");
    EXPECT_EQ(verified(tproxy).exit_code, 0);
  }
}

// A packet of no connection is nobody's to capture, though TPROXY would take it.
TEST_P(RoutingEditsOfMarked, InvalidPacketsMayBeDropped) {
  apply(tproxy);
  pod_->ns().must({"nft",
                   "add table inet others; add chain inet others in { type filter hook input priority 0; };"
                   "add rule inet others in ct state invalid drop"});
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::proxy_inbound, local(pod(8080))));
  const Output verify = verified(tproxy);
  EXPECT_EQ(verify.exit_code, 0) << verify.err;
}

// With br_netfilter rules are called while a frame passes the bridge, before the pod takes it.
TEST_P(RoutingEditsOfMarked, ABridgeThatCallsTheRulesLosesWhatTproxyGives) {
  edit(
      "ip link add br0 type bridge; ip address flush dev eth0; ip link set eth0 master br0; ip link set br0 up;"
      "{ip} address add {pod}/24 dev br0 2>/dev/null || {ip} address add {pod}/64 dev br0 nodad;"
      "{ip} route replace default via {client}");
  const char* calls = family() == Family::ipv4 ? "bridge/bridge-nf-call-iptables" : "bridge/bridge-nf-call-ip6tables";
  for (const char* each : {"bridge/bridge-nf-call-iptables", "bridge/bridge-nf-call-ip6tables"})
    set_sysctl(pod_->ns(), each, "0");
  apply(tproxy);
  const Landing by_proxy = landed(Role::proxy_inbound, local(pod(8080)));
  EXPECT_EQ(connect(from_outside, pod(8080)), by_proxy);
  EXPECT_THAT(explained("in", pod(8080)), HasSubstr("lands on port 15006"));
  const Output as_planned = verified(tproxy);
  EXPECT_EQ(as_planned.exit_code, 0) << as_planned.err;

  set_sysctl(pod_->ns(), calls, "1");
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::app, local(pod(8080))));
  const std::string why = "the bridge br0 calls the rules (bridge-nf-call-";
  EXPECT_THAT(explained("in", pod(8080)), AllOf(HasSubstr(":8080 (the app), untouched: " + why)));
  const Output verify = verified(tproxy);
  EXPECT_EQ(verify.exit_code, 6);
  EXPECT_THAT(verify.err, HasSubstr(why));
  apply(injected);  // REDIRECT needs no socket
  EXPECT_EQ(connect(from_outside, pod(8080)).role, Role::proxy_inbound);
  EXPECT_THAT(explained("in", pod(8080)), Not(HasSubstr("bridge")));
  EXPECT_EQ(verified(injected).exit_code, 0);
}

}  // namespace
}  // namespace sidetrack::netns
