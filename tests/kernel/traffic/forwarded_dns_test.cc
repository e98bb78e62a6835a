// SPDX-License-Identifier: GPL-2.0-or-later
// A container in the pod, behind a bridge, with its source translated as Docker does it, asks a name server whose DNS
// is captured.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "support/network.h"
#include "support/traffic.h"
#include "support/words.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class ForwardedDns : public Traffic {
 protected:
  using Traffic::Traffic;
  void SetUp() override {
    Traffic::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    std::string lines = "link add docker0 type bridge\nlink set net1 master docker0\naddr flush dev net1\n";
    for (const Family each : {Family::ipv4, Family::ipv6})
      lines += fmt::format("addr add {}/{} dev docker0\n", addresses(each).pod_second, each == Family::ipv4 ? 24 : 64);
    ip(pod_->ns(), lines + "link set docker0 up\n");
    wait_for_addresses(pod_->ns());
  }

  [[nodiscard]] static std::string backend() { return std::get<const char*>(GetParam()); }
  void masquerade() const {
    const std::string variant = backend() == "iptables-legacy" ? "legacy" : "nft";
    for (const auto& [tool, range] : {std::pair("iptables", "10.2.0.0/24"), std::pair("ip6tables", "fd00:2::/64")}) {
      pod_->ns().must({fmt::format("{}-{}-restore", tool, variant), "--noflush"},
                      fmt::format("*nat\n-A POSTROUTING -s {} ! -o docker0 -j MASQUERADE\nCOMMIT\n", range));
    }
  }
  [[nodiscard]] static Words dns_options(const Words& more) {
    return Words{"-i",
                 "*",
                 "-b",
                 "*",
                 "-d",
                 "15090,15021,15020",
                 "--redirect-dns",
                 "--dns-server",
                 both(&Addresses::dns)} +
           more;
  }
  [[nodiscard]] Output sidetrack(const Words& words) const {
    return pod_->ns().program(Words{program_under_test()} + words);
  }
  [[nodiscard]] Output with_backend(const char* command, const Words& options) const {
    return sidetrack(Words{command, "--backend", backend(), "--dual-stack"} + options);
  }

  [[nodiscard]] Role query(const Actor& actor, std::string_view server) const {
    return pod_
        ->connect(actor, {.to = Endpoint(server, 53),
                          .protocol = Protocol::udp,
                          .from = {},
                          .patience = std::chrono::milliseconds(2500)})  // the first neighbour solicitation may be lost
        .role;
  }
  // "arrive", "lost" or "unknown", of a query of the container.
  [[nodiscard]] std::string explained(std::string_view server) const {
    const Output output = sidetrack({"explain", "--json", "in", "udp", Endpoint(server, 53).text(), "--from",
                                     std::string(at().guest), "--in-interface", "docker0"});
    EXPECT_EQ(output.exit_code, 0) << output.err;
    const auto outcome = nlohmann::json::parse(output.out).at("outcome");
    EXPECT_EQ(outcome.at("kind"), "forwarded") << outcome;
    return outcome.value("answers", "arrive");
  }
  [[nodiscard]] Output lint() const { return sidetrack({"lint"}); }
  [[nodiscard]] std::string map() const { return sidetrack({"map"}).out; }
};
INSTANTIATE_TEST_SUITE_P(, ForwardedDns, settings(), setting_name);

TEST_P(ForwardedDns, IsAnsweredBeforeAnythingIsApplied) {
  masquerade();
  EXPECT_EQ(query(from_guest, at().dns), Role::outside);
  EXPECT_EQ(explained(at().dns), "arrive");
}

// As istio-iptables has it. It is said, and is what was requested.
TEST_P(ForwardedDns, IsLostWithTheUsualRules) {
  masquerade();
  for (const Words& interfaces : {Words{}, Words{"-k", "docker0"}, Words{"-c", "docker0"}}) {
    const Words options = dns_options(interfaces);
    const Output applied = with_backend("apply", options + Words{"--strict"});
    EXPECT_EQ(applied.exit_code, 0) << applied.err;
    EXPECT_THAT(applied.err, HasSubstr("replies to DNS queries that come in by docker0 are lost"));
    EXPECT_THAT(applied.err, HasSubstr("--track-forwarded-dns with -k docker0"));
    EXPECT_EQ(query(from_guest, at().dns), Role::no_answer);
    EXPECT_EQ(query(from_guest, at().other_dns), Role::outside);
    EXPECT_EQ(explained(at().dns), "lost");
    EXPECT_EQ(explained(at().other_dns), "arrive");
    const Output verified = with_backend("verify", options);
    EXPECT_EQ(verified.exit_code, 0) << verified.err;
    EXPECT_THAT(verified.err, HasSubstr("replies to DNS queries that come in by docker0 are lost"));
  }
}

TEST_P(ForwardedDns, IsFoundByMapAndLint) {
  masquerade();
  ASSERT_EQ(with_backend("apply", dns_options({"-k", "docker0"})).exit_code, 0);
  const Output found = lint();
  EXPECT_EQ(found.exit_code, 6);
  EXPECT_THAT(found.out, HasSubstr("ST012"));
  EXPECT_THAT(found.out, HasSubstr("DNS by udp from docker0"));
  EXPECT_THAT(map(), AllOf(HasSubstr("\nforwarded udp, from docker0"),
                           ContainsRegex(fmt::format("  to {}.*; to port 53.* replies are lost", at().dns))));
}

// A query from port 53 looks like a reply: clients have ports that the kernel chooses.
TEST_P(ForwardedDns, OfAClientWithTheServersPortIsNoMatter) {
  const char* table = family() == Family::ipv4 ? "ip" : "ip6";
  pod_->ns().must(
      {"nft",
       fmt::format("add table {0} others; add chain {0} others out {{ type nat hook postrouting priority 100; }};"
                   "add rule {0} others out masquerade",
                   table)});
  ASSERT_EQ(with_backend("apply", dns_options({"-k", "docker0", "--track-forwarded-dns"})).exit_code, 0);
  EXPECT_THAT(lint().out, Not(HasSubstr("ST012")));
}

TEST_P(ForwardedDns, ArrivesTrackedInTheZoneOfItsAnswers) {
  masquerade();
  const Words options = dns_options({"-k", "docker0", "--track-forwarded-dns"});
  const Output applied = with_backend("apply", options);
  EXPECT_EQ(applied.exit_code, 0) << applied.err;
  EXPECT_THAT(applied.err, Not(HasSubstr("are lost")));
  for (const std::string_view server : {at().dns, at().other_dns}) {
    EXPECT_EQ(query(from_guest, server), Role::outside);
    EXPECT_EQ(explained(server), "arrive");
  }
  EXPECT_EQ(query(as_app, at().dns), Role::dns);
  EXPECT_EQ(query(as_proxy, at().dns), Role::outside);
  const Output verified = with_backend("verify", options);
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  EXPECT_THAT(verified.err, Not(HasSubstr("are lost")));
  EXPECT_EQ(with_backend("verify", dns_options({"-k", "docker0"})).exit_code, 6);
}

// The proxy's own query from the port that the container's has, after its translation.
TEST_P(ForwardedDns, DoesNotClashWithQueriesOfThePod) {
  masquerade();
  ASSERT_EQ(with_backend("apply", dns_options({"-k", "docker0", "--track-forwarded-dns"})).exit_code, 0);
  const auto from_port = [&](const Actor& actor, std::string_view own) {
    return pod_->connect(actor, {.to = Endpoint(at().dns, 53), .protocol = Protocol::udp, .from = Endpoint(own, 40000)})
        .role;
  };
  EXPECT_EQ(from_port(from_guest, at().guest), Role::outside);
  EXPECT_EQ(from_port(as_proxy, at().pod), Role::outside);
  EXPECT_EQ(from_port(as_app, at().pod), Role::dns);
  EXPECT_EQ(from_port(from_guest, at().guest), Role::outside);
}

TEST_P(ForwardedDns, ToAnyServer) {
  masquerade();
  const Words options{"-i", "*", "-b", "*", "-k", "docker0", "--redirect-dns", "--capture-all-dns"};
  const Output applied = with_backend("apply", options);
  EXPECT_THAT(applied.err, HasSubstr("replies to DNS queries that come in by docker0 are lost"));
  EXPECT_EQ(query(from_guest, at().other_dns), Role::no_answer);
  EXPECT_EQ(explained(at().other_dns), "lost");
  ASSERT_EQ(with_backend("apply", options + Words{"--track-forwarded-dns"}).exit_code, 0);
  EXPECT_EQ(query(from_guest, at().other_dns), Role::outside);
  EXPECT_EQ(explained(at().other_dns), "arrive");
  // Hosts outside are not behind the pod, though they could ask a server that is.
  EXPECT_THAT(lint().out, Not(HasSubstr("ST012")));
  EXPECT_THAT(map(), Not(HasSubstr("forwarded DNS")));
}

// Queries from outside to a server behind the pod are no matter, and no interface for them is advised.
TEST_P(ForwardedDns, ToAServerBehindThePodIsNoMatter) {
  masquerade();
  const Words options = Words{"-i", "*", "-b", "*", "-k", "docker0", "--redirect-dns"} +
                        Words{"--dns-server", both(&Addresses::guest), "--track-forwarded-dns"};
  for (const char* command : {"apply", "verify"}) {
    const Output output = with_backend(command, options);
    EXPECT_EQ(output.exit_code, 0) << output.err;
    EXPECT_THAT(output.err, Not(HasSubstr("are lost")));
  }
  EXPECT_THAT(lint().out, Not(HasSubstr("ST012")));
}

// Without a translation nothing has to be undone.
TEST_P(ForwardedDns, ArrivesWhereItsSourceIsLeftAlone) {
  const Output applied = with_backend("apply", dns_options({"-k", "docker0"}));
  EXPECT_EQ(applied.exit_code, 0) << applied.err;
  EXPECT_THAT(applied.err, Not(HasSubstr("are lost")));
  EXPECT_EQ(query(from_guest, at().dns), Role::outside);
  EXPECT_EQ(explained(at().dns), "arrive");
}

class ForwardedAmbientDns : public ForwardedDns {
 protected:
  ForwardedAmbientDns() : ForwardedDns(Pod::Options{.ztunnel = true}) {}
};
INSTANTIATE_TEST_SUITE_P(, ForwardedAmbientDns, settings(), setting_name);

TEST_P(ForwardedAmbientDns, IsLostUnlessItIsTrackedWithItsAnswers) {
  masquerade();
  const Words options{"--dataplane", "ambient", "--redirect-dns", "-k", "docker0"};
  const Output applied = with_backend("apply", options);
  EXPECT_EQ(applied.exit_code, 0) << applied.err;
  EXPECT_THAT(applied.err, HasSubstr("replies to DNS queries that come in by docker0 are lost"));
  EXPECT_EQ(query(from_guest, at().dns), Role::no_answer);
  EXPECT_EQ(explained(at().dns), "lost");
  ASSERT_EQ(with_backend("apply", options + Words{"--track-forwarded-dns"}).exit_code, 0);
  EXPECT_EQ(query(from_guest, at().dns), Role::outside);
  EXPECT_EQ(explained(at().dns), "arrive");
  EXPECT_EQ(query(as_app, at().dns), Role::dns);
  EXPECT_EQ(query(as_ztunnel, at().dns), Role::dns) << "without its mark";
  const Output verified = with_backend("verify", options + Words{"--track-forwarded-dns"});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
}

}  // namespace
}  // namespace sidetrack::netns
