// SPDX-License-Identifier: GPL-2.0-or-later
// Rules about types of addresses, about either port, and about chance: `explain` says of real connections whether the
// rules let them through, or that it cannot know.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

// A rule that drops, and whether connections of the app to the service, by loopback to the app itself and from outside
// to the app arrive all the same.
struct Case {
  const char* rule;  // without its target
  bool out, by_loopback, in;
};
constexpr Case cases[] = {
    {"OUTPUT -m addrtype --dst-type LOCAL", true, false, true},
    {"OUTPUT -m addrtype ! --dst-type LOCAL", false, true, false},
    {"OUTPUT -m addrtype --src-type UNICAST", true, true, true},
    {"OUTPUT -m addrtype --src-type LOCAL --dst-type UNICAST", false, true, false},
    {"OUTPUT -m addrtype --dst-type LOCAL --limit-iface-out", true, false, true},
    {"OUTPUT -m addrtype --dst-type BROADCAST,MULTICAST", true, true, true},
    {"INPUT -m addrtype --src-type LOCAL", true, false, true},
    {"INPUT -m addrtype ! --src-type LOCAL", false, true, false},
    {"INPUT -m addrtype --dst-type LOCAL --limit-iface-in", false, false, false},
    {"INPUT -p tcp -m multiport --ports 80", false, true, true},
    {"INPUT -p tcp -m multiport --ports 8080,1", true, false, false},
    {"OUTPUT -p tcp -m multiport ! --ports 80,8080", true, true, true},
    {"INPUT -p tcp -m multiport ! --ports 80", true, false, false},
};
// Of IPv6, and of nft alone.
constexpr Case native_cases[] = {
    {"output fib daddr type local", true, false, true},
    {"output meta l4proto tcp fib daddr type != local", false, true, false},
    {"input fib saddr type local", true, false, true},
    {"input fib daddr . iif type != { local, multicast }", true, true, true},
};

class AddressType : public KernelTest {
 protected:
  // Whether the three connections arrive, and that explain says so.
  void expect_as_explained(const Case& expected, Family family) const {
    const auto& at = addresses(family);
    const Endpoint service(at.service, 80), itself(at.any_loopback, 8080), app(at.pod, 8080);
    expect(as_app, service, Role::outside, {"out", "tcp", service.text(), "--uid", "1000", "--gid", "1000"},
           expected.out);
    expect(as_app, itself, Role::app, {"lo", "tcp", itself.text(), "--uid", "1000", "--gid", "1000"},
           expected.by_loopback);
    expect(from_outside, app, Role::app, {"in", "tcp", app.text()}, expected.in);
  }

  [[nodiscard]] nlohmann::json outcome(std::vector<std::string> packet) const {
    packet.insert(packet.begin(), {program_under_test(), "explain", "--json"});
    return nlohmann::json::parse(pod_.ns().must(packet)).at("outcome");
  }

  const Pod pod_;

 private:
  void expect(const Actor& actor, const Endpoint& to, Role role, const std::vector<std::string>& packet,
              bool arrives) const {
    SCOPED_TRACE(packet[0]);
    const Landing landing = pod_.connect(
        actor, {.to = to, .protocol = Protocol::tcp, .from = {}, .patience = std::chrono::milliseconds(1000)});
    EXPECT_EQ(landing.role == role, arrives) << landing;
    const auto said = outcome(packet);
    const bool is_dropped = said.at("kind") == "dropped" || said.value("answers", "arrive") == "lost";
    EXPECT_EQ(!is_dropped, arrives) << said.at("sentence");
    EXPECT_NE(said.at("kind"), "unknown") << said.at("sentence");
  }
};

TEST_F(AddressType, IsThatOfRealPackets) {
  for (const char* kind : {"legacy", "nft"}) {
    for (const Case& each : cases) {
      SCOPED_TRACE(fmt::format("{}: {}", kind, each.rule));
      const std::string restore = fmt::format("iptables-{}-restore", kind);
      pod_.ns().must({restore}, fmt::format("*filter\n-A {} -j DROP\nCOMMIT\n", each.rule));
      expect_as_explained(each, Family::ipv4);
      pod_.ns().must({restore}, "*filter\nCOMMIT\n");
    }
  }
}

TEST_F(AddressType, OfIpv6AndNftIsThatOfRealPackets) {
  for (const Case& each : native_cases) {
    SCOPED_TRACE(each.rule);
    const std::string rule = each.rule;
    const std::string hook = rule.substr(0, rule.find(' '));
    pod_.ns().must({"nft", "-f", "-"},
                   fmt::format("table inet t {{ chain c {{ type filter hook {} priority 0; {} drop; }}; }}", hook,
                               rule.substr(hook.size() + 1)));
    for (const Family family : {Family::ipv4, Family::ipv6}) expect_as_explained(each, family);
    pod_.ns().must({"nft", "delete", "table", "inet", "t"});
  }
  for (const char* rule : {"OUTPUT -m addrtype --dst-type LOCAL", "OUTPUT -m addrtype --dst-type UNICAST,LOCAL"}) {
    SCOPED_TRACE(rule);
    pod_.ns().must({"ip6tables-nft-restore"}, fmt::format("*filter\n-A {} -j DROP\nCOMMIT\n", rule));
    expect_as_explained({rule, true, false, true}, Family::ipv6);
    pod_.ns().must({"ip6tables-nft-restore"}, "*filter\nCOMMIT\n");
  }
}

// Packets that a rule takes by chance, and ports that the kernel chooses, are not known.
TEST_F(AddressType, ChanceIsNotKnown) {
  for (const char* rule : {"*filter\n-A OUTPUT -m statistic --mode random --probability 0.5 -j DROP\nCOMMIT\n",
                           "*nat\n-A OUTPUT -p tcp -j REDIRECT --to-ports 8080-8081\nCOMMIT\n",
                           "*nat\n-A OUTPUT -p tcp -j DNAT --to-destination 10.96.0.10-10.96.0.20\nCOMMIT\n"}) {
    SCOPED_TRACE(rule);
    pod_.ns().must({"iptables-nft-restore"}, rule);
    const std::string service = Endpoint(addresses(Family::ipv4).service, 80).text();
    EXPECT_EQ(outcome({"out", "tcp", service, "--uid", "1000", "--gid", "1000"}).at("kind"), "unknown");
    pod_.ns().must({"iptables-nft-restore"}, "*filter\nCOMMIT\n*nat\nCOMMIT\n");
  }
  // What does nothing to the packet leaves all known.
  pod_.ns().must({"iptables-nft-restore"},
                 "*filter\n-A OUTPUT -m statistic --mode random --probability 0.5 -j NFLOG\nCOMMIT\n");
  EXPECT_EQ(outcome({"out", "tcp", Endpoint(addresses(Family::ipv4).service, 80).text()}).at("kind"), "leaves");
}

}  // namespace
}  // namespace sidetrack::netns
