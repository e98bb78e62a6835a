// SPDX-License-Identifier: GPL-2.0-or-later
// Policy rules and routes of others beside those that TPROXY needs: what stands for ours is left alone, what can be
// mended is, and what takes marked packets away is named.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "support/listing.h"
#include "support/network.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct PolicyRouting : KernelTest {
  Pod pod{Pod::Options{.transparent_proxy = true}};

  [[nodiscard]] Output run(const char* command, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{program_under_test(), command};
    if (std::string_view(command) != "clean" && std::string_view(command) != "show") {
      for (const char* word :
           {"--backend", "nftables", "--ip-families", "ipv4", "-m", "TPROXY", "-i", "*", "-b", "*", "-d", "15021"}) {
        words.emplace_back(word);
      }
    }
    words.insert(words.end(), more.begin(), more.end());
    return pod.ns().program(words);
  }
  void shell(const std::string& commands) const { pod.ns().must({"sh", "-ec", commands}); }
  [[nodiscard]] std::string rules() const { return pod.ns().must({"ip", "rule"}); }

  // verify = 0, diff = 0, apply changes nothing and warns of nothing, what is marked stays.
  void expect_as_requested() const {
    const std::string before = listing(pod.ns());
    for (const char* command : {"verify", "diff", "apply"}) {
      const Output output = run(command);
      EXPECT_EQ(output.exit_code, 0) << command << output.out << output.err;
      EXPECT_THAT(output.err, Not(HasSubstr("warning")));
    }
    EXPECT_EQ(listing(pod.ns()), before);
    EXPECT_THAT(pod.ns().must({"ip", "route", "get", "198.51.100.1", "mark", "1337"}), HasSubstr("local 198.51.100.1"));
  }
  void apply() const { ASSERT_EQ(run("apply").exit_code, 0); }
};

// The source that the kernel chooses: of the route, or the first address in the gateway's network, or the first one.
TEST_F(PolicyRouting, TheSourceIsTheKernels) {
  shell(
      "ip addr add 10.9.0.5/24 dev eth0; ip addr add 10.9.0.7/24 dev eth0; ip route add 10.77.0.0/16 dev eth0;"
      "ip route add 10.78.0.0/16 via 10.9.0.1; ip route add 10.79.0.0/16 via 10.9.0.1 src 10.1.0.2;"
      "ip -6 addr add fd00:9::5/64 dev eth0 nodad; ip -6 route add fd00:79::/64 dev eth0 src fd00:9::5");
  for (const char* destination :
       {"198.51.100.1", "10.9.0.77", "10.9.0.7", "10.77.1.1", "10.78.1.1", "10.79.1.1", "127.0.0.9", "fd00:79::1"}) {
    const std::string to =
        std::string(destination).find(':') == std::string::npos ? destination : fmt::format("[{}]", destination);
    const std::string answer = pod.ns().must({"ip", "route", "get", destination});
    const auto src = answer.find(" src ") + 5;
    const std::string source = answer.substr(src, answer.find(' ', src) - src);
    const std::string said =
        pod.ns().program({program_under_test(), "explain", "out", "tcp", to + ":80", "--json"}).out;
    EXPECT_THAT(said, HasSubstr(fmt::format("\"address\": \"{}\"", source))) << answer;
  }
}

TEST_F(PolicyRouting, AnEqualRuleOfSomebodyElseStandsForOurs) {
  apply();
  shell("ip rule del fwmark 1337 lookup 133; ip rule add fwmark 1337 lookup 133 protocol zebra");
  expect_as_requested();
  EXPECT_EQ(run("clean").exit_code, 0);
  EXPECT_THAT(rules(), HasSubstr("fwmark 0x539 lookup 133 proto zebra"));
  EXPECT_THAT(run("clean").err, HasSubstr("nothing to remove"));
}

TEST_F(PolicyRouting, AnEqualRuleBehindTableMainDoesNot) {
  shell("ip rule add pref 40000 fwmark 1337 lookup 133 protocol zebra");
  apply();
  EXPECT_THAT(rules(), AllOf(HasSubstr("40000:\tfrom all fwmark 0x539 lookup 133 proto zebra"),
                             HasSubstr("32765:\tfrom all fwmark 0x539 lookup 133 proto 137")));
  expect_as_requested();
}

TEST_F(PolicyRouting, CleanNamesTheRouteThatStays) {
  shell("ip rule add fwmark 0x539/0xfff lookup 133; ip route add local default dev lo table 133");
  EXPECT_THAT(run("clean").err, HasSubstr("nothing to remove"));
  shell("iptables-nft -t nat -N ISTIO_OUTPUT; iptables-nft -t nat -A OUTPUT -p tcp -j ISTIO_OUTPUT");
  const Output cleaned = run("clean");
  EXPECT_THAT(cleaned.err, HasSubstr("'ip route local default dev lo table 133' stays: no policy rule of the mesh"));
  EXPECT_THAT(pod.ns().must({"ip", "route", "show", "table", "133"}), HasSubstr("local default"));
  shell("ip rule add fwmark 1337 lookup 133; iptables-nft -t nat -N ISTIO_OUTPUT");
  EXPECT_THAT(run("clean").err, Not(HasSubstr(" stays")));
}

TEST_F(PolicyRouting, OursBehindOthersIsMovedBeforeThem) {
  apply();
  const struct {
    const char* edit;
    const char* place;
  } edits[] = {
      {"ip rule del fwmark 1337 lookup 133; ip rule add pref 40000 fwmark 1337 lookup 133 protocol 137", "40000"},
      {"ip rule add pref 100 lookup main", "32765"},
      {"ip rule add pref 50 fwmark 1/1 unreachable", "99"},
      {"ip rule add pref 20 lookup main suppress_prefixlength 0", "49"},
  };
  for (const auto& [edit, place] : edits) {
    SCOPED_TRACE(edit);
    shell(edit);
    EXPECT_EQ(run("verify").exit_code, 6);
    const Output differs = run("diff");
    EXPECT_EQ(differs.exit_code, 6);
    EXPECT_THAT(differs.out, AllOf(HasSubstr(std::string("-ip rule add pref ") + place + " fwmark 1337 lookup 133"),
                                   HasSubstr("+ip rule add fwmark 1337 lookup 133")));
    EXPECT_THAT(run("show").out, HasSubstr(std::string("at ") + place + ", after other programs' rules"));
    EXPECT_EQ(run("apply", {"--strict"}).exit_code, 0);
    expect_as_requested();
  }
  EXPECT_EQ(run("clean").exit_code, 0);
  EXPECT_THAT(rules(), Not(HasSubstr("lookup 133")));
}

TEST_F(PolicyRouting, RulesThatCannotMatchMayStandBefore) {
  apply();
  shell("ip rule add pref 9 fwmark 0x200/0xf00 lookup 2004; ip rule add pref 10 fwmark 7 unreachable");
  expect_as_requested();
  EXPECT_THAT(rules(), HasSubstr("32765:\tfrom all fwmark 0x539"));
}

TEST_F(PolicyRouting, WhatTakesMarkedPacketsAwayIsNamed) {
  const struct {
    const char* edit;
    const char* undo;
    const char* named;
  } edits[] = {
      {"ip rule add pref 0 lookup main", "ip rule del pref 0 lookup main", "ip rule 0: from all lookup main"},
      {"ip rule add pref 0 to 198.51.100.0/24 unreachable", "ip rule del pref 0 to 198.51.100.0/24 unreachable",
       "ip rule 0: to 198.51.100.0/24 unreachable"},
      {"ip route add 203.0.113.0/24 dev eth0 table 133", "ip route del 203.0.113.0/24 table 133",
       "ip route 203.0.113.0/24 dev eth0 table 133"},
      {"ip route add unreachable 203.0.113.0/24 table 133", "ip route del unreachable 203.0.113.0/24 table 133",
       "ip route unreachable 203.0.113.0/24 table 133"},
  };
  apply();
  for (const auto& [edit, undo, named] : edits) {
    SCOPED_TRACE(edit);
    shell(edit);
    const std::string before = listing(pod.ns());
    const Output verified = run("verify");
    EXPECT_EQ(verified.exit_code, 6);
    EXPECT_THAT(verified.out + verified.err, HasSubstr(named));
    EXPECT_EQ(run("diff").exit_code, 6);
    const Output strict = run("apply", {"--strict"});
    EXPECT_EQ(strict.exit_code, 6);
    EXPECT_THAT(strict.err, AllOf(HasSubstr(named), HasSubstr("nothing was changed")));
    const Output applied = run("apply");
    EXPECT_EQ(applied.exit_code, 0);
    EXPECT_THAT(applied.err, AllOf(HasSubstr("warning"), HasSubstr(named)));
    EXPECT_EQ(listing(pod.ns()), before);
    shell(undo);
    expect_as_requested();
  }
}

// What explain says of where a packet goes, as `ip route get` does.
TEST_F(PolicyRouting, ExplainFollowsOthersRulesAndRoutes) {
  shell(
      "ip rule add pref 100 to 198.51.100.0/24 lookup 100; ip route add local 198.51.100.0/25 dev lo table 100;"
      "ip route add unreachable 198.51.100.128/26 table 100; ip route add throw 198.51.100.192/26 table 100;"
      "ip rule add pref 200 fwmark 5/0xf lookup 200; ip route add local default dev lo table 200;"
      "ip rule add pref 300 not to 0.0.0.0/1 prohibit; ip rule add pref 310 iif eth0 to 7.0.0.0/8 blackhole;"
      "ip rule add pref 400 uidrange 77-77 to 9.0.0.0/8 lookup 200");
  const auto explained = [&](const std::vector<std::string>& packet) {
    std::vector<std::string> words{program_under_test(), "explain", "--brief", "out", "udp"};
    words.insert(words.end(), packet.begin(), packet.end());
    return pod.ns().program(words).out;
  };
  EXPECT_THAT(explained({"198.51.100.1:80"}), HasSubstr("lands on 198.51.100.1:80"));
  // A connection would have a source that is not the pod's.
  EXPECT_THAT(pod.ns().program({program_under_test(), "explain", "--brief", "out", "tcp", "198.51.100.1:80"}).out,
              HasSubstr("never sent"));
  EXPECT_THAT(explained({"198.51.100.130:80"}), HasSubstr("no route"));
  EXPECT_THAT(explained({"198.51.100.200:80"}), HasSubstr("no route"));  // rule 300
  EXPECT_THAT(explained({"10.0.0.1:80", "--mark", "0x15"}), HasSubstr("lands on 10.0.0.1:80"));
  EXPECT_THAT(explained({"10.0.0.1:80"}), HasSubstr("leaves"));
  EXPECT_THAT(explained({"7.0.0.1:80"}), HasSubstr("leaves"));
  EXPECT_THAT(explained({"9.0.0.1:80"}), AllOf(HasSubstr("know"), HasSubstr("uidrange")));
}

// A route that rejects is not suppressed.
TEST_F(PolicyRouting, SuppressesWhatTheKernelSuppresses) {
  shell(
      "ip rule add pref 10 lookup 300 suppress_prefixlength 16; ip -6 rule add pref 10 lookup 300 suppress_prefixlength"
      " 64; ip route add 11.1.0.0/16 dev lo table 300; ip route add local 11.2.0.0/16 dev lo table 300;"
      "ip route add local 11.3.0.0/17 dev lo table 300; ip route add throw 11.4.0.0/16 table 300;"
      "ip route add blackhole 11.5.0.0/16 table 300; ip route add prohibit 11.6.0.0/16 table 300;"
      "ip route add unreachable 11.7.0.0/16 table 300; ip -6 route add blackhole 2001:db8:5::/64 table 300;"
      "ip -6 route add local 2001:db8:6::/64 dev lo table 300");
  for (const std::string to : {"11.1.0.1", "11.2.0.1", "11.3.0.1", "11.4.0.1", "11.5.0.1", "11.6.0.1", "11.7.0.1",
                               "2001:db8:5::1", "2001:db8:6::1"}) {
    SCOPED_TRACE(to);
    const Output routed = pod.ns().program({"ip", "route", "get", to});
    const char* where = routed.exit_code != 0                            ? "no route"
                        : routed.out.find("local ") != std::string::npos ? "lands on"
                                                                         : "leaves";
    const std::string at = to.find(':') != std::string::npos ? "[" + to + "]:80" : to + ":80";
    EXPECT_THAT(pod.ns().program({program_under_test(), "explain", "--brief", "out", "udp", at}).out, HasSubstr(where))
        << routed.out << routed.err;
  }
}

// For all packets that are captured, too.
TEST_F(PolicyRouting, VerifyNamesARouteThatIsNotSuppressed) {
  apply();
  shell("ip rule add pref 10 lookup 300 suppress_prefixlength 0");
  expect_as_requested();
  shell("ip route add blackhole default table 300");
  const Output verified = run("verify");
  EXPECT_EQ(verified.exit_code, 6);
  EXPECT_THAT(verified.out + verified.err, HasSubstr("ip route blackhole default table 300"));
}

}  // namespace
}  // namespace sidetrack::netns
