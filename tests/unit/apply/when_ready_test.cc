// SPDX-License-Identifier: GPL-2.0-or-later
// Whom `apply --when-ready` waits for. That it waits is the matter of tests/kernel/state/when_ready_test.cc.
#include "apply/when_ready.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "support/cannot_run.h"
#include "system/descriptor.h"
#include "unit/apart.h"
#include "unit/asking.h"

namespace sidetrack {
namespace {

AwaitedProxy awaited(const char* options, std::uint16_t port) {
  CommandLine line;
  const HostFacts facts = asked(options, line);
  return awaited_proxy(line.config, plan(line.config, facts), port, std::chrono::seconds(3));
}

TEST(AwaitedProxyTest, IsLedToByTheRules) {
  using Led = AwaitedProxy::Led;
  const AwaitedProxy outbound = awaited("-i * -b *", 15001);
  EXPECT_EQ(outbound.port, 15001);
  EXPECT_EQ(outbound.timeout, std::chrono::seconds(3));
  EXPECT_EQ(outbound.led, Led::to_loopback);
  EXPECT_EQ(outbound.families, Families::both());
  EXPECT_EQ(outbound.uids, std::vector<std::uint32_t>{1337});
  EXPECT_EQ(awaited("-i * -b *", 15006).led, Led::anywhere);
  EXPECT_EQ(awaited("-i * -b * -k net1", 15001).led, Led::anywhere);
  EXPECT_EQ(awaited("-i * -b * --ip-families ipv4", 15001).families, Families(Family::ipv4));
  const AwaitedProxy other = awaited("-i * -b * --ip-families ipv4", 15090);
  EXPECT_EQ(other.led, Led::nothing);
  EXPECT_EQ(other.families, Families(Family::ipv4));
  EXPECT_EQ(awaited("-m NONE", 15001).led, Led::nothing);
}

TEST(AwaitedProxyTest, OfAmbientPodsHasNoUser) {
  EXPECT_TRUE(awaited("--dataplane ambient", 15001).uids.empty());
  EXPECT_EQ(awaited("-u 1,2", 15001).uids, (std::vector<std::uint32_t>{1, 2}));
}

// ---- Whether it listens

constexpr std::uint16_t port = 15001;

Descriptor listening(const char* address, bool ipv6_only) {
  const Address at = *Address::parse(address);
  sockaddr_storage where{};
  socklen_t size = 0;
  if (at.family == Family::ipv6) {
    auto* const to = reinterpret_cast<sockaddr_in6*>(&where);
    to->sin6_family = AF_INET6;
    to->sin6_port = htons(port);
    std::memcpy(&to->sin6_addr, at.bytes.data(), at.size());
    size = sizeof *to;
  } else {
    auto* const to = reinterpret_cast<sockaddr_in*>(&where);
    to->sin_family = AF_INET;
    to->sin_port = htons(port);
    std::memcpy(&to->sin_addr, at.bytes.data(), at.size());
    size = sizeof *to;
  }
  Descriptor made(socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int only = ipv6_only ? 1 : 0;
  if (at.family == Family::ipv6) setsockopt(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
  const bool done =
      bind(made.get(), reinterpret_cast<const sockaddr*>(&where), size) == 0 && listen(made.get(), 1) == 0;
  return done ? std::move(made) : Descriptor();
}

// "yes", or what is warned of; in a network namespace of its own, with sockets at these addresses ("[::]": of IPv6
// alone).
std::string listens_at(const std::vector<std::string>& addresses, AwaitedProxy proxy) {
  return testing::apart([&]() -> std::string {
    const bool has_user = !proxy.uids.empty() && proxy.uids.front() == 0;
    if (!testing::enter_new(CLONE_NEWNET) || system("ip link set lo up") != 0) return "skip";
    if (has_user) proxy.uids.front() = geteuid();
    std::vector<Descriptor> sockets;
    for (const std::string& address : addresses) {
      const bool only = address.front() == '[';
      sockets.push_back(listening((only ? address.substr(1, address.size() - 2) : address).c_str(), only));
      if (!sockets.back().valid()) return "skip";
    }
    std::string said;
    const auto add = [&](const std::string& words) { said += words; };
    proxy.port = port;
    ProxyWatch watch(proxy, {add, add, add});
    const bool first = watch.listens();
    if (watch.listens() != first) return "it changes";  // and is said once
    return first ? "yes" + said : said;
  });
}

TEST(ProxyWatchTest, TakesWhatTheRulesLeadToIt) {
  using Led = AwaitedProxy::Led;
  if (listens_at({"::"}, {}) == "skip") return cannot_run("it takes a network namespace with IPv6");
  struct Case {
    std::vector<std::string> addresses;
    Led led;
    Families families;
    std::string said;
  };
  const Families both = Families::both();
  const Families ipv4 = Family::ipv4;
  const auto alone = [](const char* places, const char* wanted) {
    return std::string("ztunnel listens on port 15001 at ") + places + " only, but must also listen at " + wanted;
  };
  const char* any = "IPv4: 0.0.0.0, IPv6: ::";
  const char* loopback = "IPv4: 127.0.0.1 or 0.0.0.0, IPv6: ::1 or ::";
  for (const Case& each : {
           Case{{}, Led::anywhere, both, ""},
           Case{{"::"}, Led::anywhere, both, "yes"},
           Case{{"[::]"}, Led::anywhere, both, alone(":: (IPv6 only)", any)},
           Case{{"[::]", "0.0.0.0"}, Led::anywhere, both, "yes"},
           Case{{"0.0.0.0"}, Led::anywhere, both, alone("0.0.0.0", any)},
           Case{{"0.0.0.0"}, Led::anywhere, ipv4, "yes"},
           Case{{"127.0.0.1"}, Led::anywhere, ipv4, alone("127.0.0.1", "IPv4: 0.0.0.0")},
           Case{{"127.0.0.1", "[::1]"}, Led::anywhere, both, alone("127.0.0.1, ::1 (IPv6 only)", any)},
           Case{{"127.0.0.1", "[::1]"}, Led::to_loopback, both, "yes"},
           Case{{"[::1]"}, Led::to_loopback, both, alone("::1 (IPv6 only)", loopback)},
           Case{{"127.0.0.1", "[::]"}, Led::to_loopback, both, "yes"},
           Case{{"127.0.0.2"}, Led::to_loopback, ipv4, alone("127.0.0.2", "IPv4: 127.0.0.1 or 0.0.0.0")},
           Case{{"127.0.0.2"}, Led::nothing, both, "yes"},
           Case{{"[::1]"}, Led::nothing, both, "yes"},
           Case{{"[::1]"}, Led::nothing, ipv4, alone("::1 (IPv6 only)", "IPv4: any address")},
       }) {
    AwaitedProxy proxy;
    proxy.led = each.led;
    proxy.families = each.families;
    EXPECT_EQ(listens_at(each.addresses, proxy), each.said) << ::testing::PrintToString(each.addresses);
  }
}

TEST(ProxyWatchTest, OfAnotherUserIsNotTheProxy) {
  AwaitedProxy proxy;
  proxy.families = Family::ipv4;
  proxy.uids = {0};  // this one
  const std::string ours = listens_at({"127.0.0.1"}, proxy);
  if (ours == "skip") return cannot_run("it takes a network namespace");
  EXPECT_EQ(ours, "yes");
  proxy.uids = {1337, 1338};
  EXPECT_THAT(listens_at({"127.0.0.1", "127.0.0.2"}, proxy),
              ::testing::MatchesRegex("port 15001 is held by uid [0-9]+, not by the proxy \\(-u 1337,1338\\)"));
}

}  // namespace
}  // namespace sidetrack
