// SPDX-License-Identifier: GPL-2.0-or-later
// Rules about what connection tracking knows of a connection, beside translations: `explain` says of real connections
// whether the rules let them through.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

// To the service's port 80, to port 81 of loopback, and from outside to the app.
constexpr const char* translations =
    "*nat\n"
    "-A OUTPUT -p tcp -d 10.96.0.10 --dport 80 -j DNAT --to-destination 10.97.0.10:443\n"
    "-A OUTPUT -p tcp -d 127.0.0.1 --dport 81 -j REDIRECT --to-ports 8080\n"
    "-A INPUT -p tcp -i eth0 --dport 8080 -j SNAT --to-source 10.96.0.99\n"
    "COMMIT\n";

// A rule that drops, and whether each of them arrives all the same.
struct ConnectionCase {
  const char* rule;  // without its target
  bool out, by_loopback, in;
};
constexpr ConnectionCase connection_cases[] = {
    {"OUTPUT -m conntrack --ctorigdst 10.96.0.10", false, true, true},
    {"OUTPUT -m conntrack --ctreplsrc 10.97.0.0/16", false, true, true},
    {"OUTPUT -m conntrack --ctreplsrc 10.96.0.0/16", true, true, true},
    {"OUTPUT -m conntrack --ctorigdstport 80", false, true, true},
    {"OUTPUT -m conntrack --ctreplsrcport 8080", true, false, false},
    {"INPUT -m conntrack --ctorigdstport 81", true, false, true},
    {"INPUT -m conntrack ! --ctorigdstport 80:81", true, true, false},
    {"INPUT -m conntrack --ctrepldst 10.96.0.99", true, true, false},
    {"OUTPUT -m conntrack --ctorigsrc 10.1.0.1", true, true, false},
    {"OUTPUT -m conntrack --ctorigsrcport 1:1023", true, true, true},
    {"OUTPUT -m conntrack --ctstate DNAT", false, false, true},
    {"OUTPUT -m conntrack --ctstate SNAT", true, true, false},
    {"INPUT -m conntrack --ctstate SNAT,DNAT", false, false, false},
    {"OUTPUT -m conntrack --ctstatus SEEN_REPLY", false, false, false},
    {"OUTPUT -m conntrack --ctstatus EXPECTED", true, true, true},
    {"INPUT -m conntrack --ctstatus CONFIRMED", false, false, false},
    {"INPUT -m conntrack ! --ctstatus CONFIRMED", true, true, false},
    {"OUTPUT -m conntrack --ctproto 17", true, true, true},
    {"OUTPUT -m conntrack --ctproto 6 ! --ctorigdst 10.96.0.10", true, false, false},
    {"OUTPUT -m conntrack --ctstate NEW --ctorigdst 10.96.0.10", false, true, true},
    {"OUTPUT -m conntrack --ctstate ESTABLISHED --ctorigsrc 10.1.0.1 --ctdir REPLY", true, true, false},
};
// Of nft, with the family of its table.
constexpr ConnectionCase native_connection_cases[] = {
    {"inet output ct original ip daddr 10.96.0.10", false, true, true},
    {"inet output ct original ip daddr != 10.96.0.0/16", true, false, false},
    {"inet output ct reply ip saddr { 10.97.0.0/16, 9.9.9.9 }", false, true, true},
    {"inet output ct original ip6 daddr fd00::/8", true, true, true},
    {"ip output ct original saddr 10.1.0.1", true, true, false},
    {"inet input meta l4proto tcp ct original proto-dst 81", true, false, true},
    {"inet output meta l4proto tcp ct reply proto-src 8000-9000", true, false, false},
    {"inet output ct status dnat", false, false, true},
    {"inet output ct status ! snat", false, false, true},
    {"inet output ct protocol udp", true, true, true},
    {"inet input ct direction original", true, false, false},
};

class Connection : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    pod_.ns().must({"iptables-nft-restore"}, translations);
  }

  // Whether the three connections arrive, and that explain says so.
  void expect_as_explained(const ConnectionCase& expected) const {
    const auto& at = addresses(Family::ipv4);
    const Endpoint service(at.service, 80), itself(at.any_loopback, 81), app(at.pod, 8080);
    const std::vector<std::string> as_app_user{"--uid", "1000", "--gid", "1000"};
    expect(as_app, service, Role::outside, "out", as_app_user, expected.out);
    expect(as_app, itself, Role::app, "lo", as_app_user, expected.by_loopback);
    expect(from_outside, app, Role::app, "in", {"--from", std::string(at.client)}, expected.in);
  }

  const Pod pod_;

 private:
  void expect(const Actor& actor, const Endpoint& to, Role role, const char* way, const std::vector<std::string>& more,
              bool arrives) const {
    SCOPED_TRACE(way);
    const std::chrono::milliseconds patience(arrives ? 2000 : 60);  // that none comes is seen soon: all is one machine
    const Landing landing =
        pod_.connect(actor, {.to = to, .protocol = Protocol::tcp, .from = {}, .patience = patience});
    EXPECT_EQ(landing.role == role, arrives) << landing;
    std::vector<std::string> words{program_under_test(), "explain", "--json", way, "tcp", to.text()};
    words.insert(words.end(), more.begin(), more.end());
    const auto said = nlohmann::json::parse(pod_.ns().must(words)).at("outcome");
    const bool is_dropped = said.at("kind") == "dropped" || said.value("answers", "arrive") == "lost";
    EXPECT_EQ(!is_dropped, arrives) << said.at("sentence");
    EXPECT_NE(said.at("kind"), "unknown") << said.at("sentence");
    EXPECT_NE(said.value("answers", "arrive"), "unknown") << said.at("sentence");
  }
};

TEST_F(Connection, IsKnownAsRealPacketsAre) {
  for (const char* kind : {"legacy", "nft"}) {
    for (const ConnectionCase& each : connection_cases) {
      SCOPED_TRACE(fmt::format("{}: {}", kind, each.rule));
      const std::string restore = fmt::format("iptables-{}-restore", kind);
      pod_.ns().must({restore}, fmt::format("*filter\n-A {} -j DROP\nCOMMIT\n", each.rule));
      expect_as_explained(each);
      pod_.ns().must({restore}, "*filter\nCOMMIT\n");
    }
  }
}

TEST_F(Connection, OfNftIsKnownAsRealPacketsAre) {
  for (const ConnectionCase& each : native_connection_cases) {
    SCOPED_TRACE(each.rule);
    const std::string rule = each.rule;
    const auto family_end = rule.find(' '), hook_end = rule.find(' ', family_end + 1);
    const std::string family = rule.substr(0, family_end);
    pod_.ns().must({"nft", "-f", "-"},
                   fmt::format("table {} t {{ chain c {{ type filter hook {} priority 0; {} drop; }}; }}", family,
                               rule.substr(family_end + 1, hook_end - family_end - 1), rule.substr(hook_end)));
    expect_as_explained(each);
    pod_.ns().must({"nft", "delete", "table", family, "t"});
  }
}

}  // namespace
}  // namespace sidetrack::netns
