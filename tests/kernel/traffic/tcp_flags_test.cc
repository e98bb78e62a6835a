// SPDX-License-Identifier: GPL-2.0-or-later
// Rules about the flags of TCP: `explain` says of real connections whether they are answered.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

struct FlagsCase {
  const char* rule;
  bool is_answered;
};
constexpr FlagsCase flags_cases[] = {
    {"OUTPUT -p tcp --syn -j DROP", false},
    {"OUTPUT -p tcp --tcp-flags ALL SYN -j DROP", false},
    {"OUTPUT -p tcp -m tcp --dport 81 --syn -j DROP", true},
    {"OUTPUT -p tcp --tcp-flags SYN,ACK SYN,ACK -j DROP", true},
    {"OUTPUT -p tcp --tcp-flags RST RST -j DROP", true},
    {"INPUT -p tcp --syn -j DROP", true},
    {"INPUT -p tcp --tcp-flags SYN,ACK SYN,ACK -j DROP", false},
    {"INPUT -p tcp --tcp-flags SYN,RST,ACK SYN,ACK -j DROP", false},
    {"INPUT -p tcp --tcp-flags SYN,RST,ACK ACK -j ACCEPT", true},
    {"INPUT -p tcp --tcp-flags SYN,RST,ACK ACK -j DROP", false},  // the handshake ends, and nothing follows
    {"OUTPUT -p tcp --tcp-flags SYN,RST,ACK ACK -j DROP", false},
};

class TcpFlags : public KernelTest, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(, TcpFlags, ::testing::Values("legacy", "nft"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(TcpFlags, AreThoseOfRealPackets) {
  const Pod pod;
  const Endpoint to(addresses(Family::ipv4).service, 80);
  for (const auto& [rule, is_answered] : flags_cases) {
    SCOPED_TRACE(rule);
    pod.ns().must({fmt::format("iptables-{}-restore", GetParam())}, fmt::format("*filter\n-A {}\nCOMMIT\n", rule));
    const Landing landing = pod.connect(
        as_app, {.to = to, .protocol = Protocol::tcp, .from = {}, .patience = std::chrono::milliseconds(1000)});
    EXPECT_EQ(landing.role == Role::outside, is_answered) << landing;
    const auto outcome = nlohmann::json::parse(pod.ns().must({program_under_test(), "explain", "--json", "out", "tcp",
                                                              to.text(), "--uid", "1000", "--gid", "1000"}))
                             .at("outcome");
    const bool arrives = outcome.at("kind") == "leaves" && outcome.value("answers", "arrive") == "arrive";
    EXPECT_EQ(arrives, is_answered) << outcome.at("sentence");
    EXPECT_NE(outcome.at("kind"), "unknown");
  }
}

}  // namespace
}  // namespace sidetrack::netns
