// SPDX-License-Identifier: GPL-2.0-or-later
// Sockets that are bound to an interface take no route by another one, not even those to lo: where rules redirect to
// lo, what they send leaves instead. Each packet is counted where explain says that it goes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <net/if.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>

#include "support/network.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::HasSubstr;

class Bound : public Traffic {
 protected:
  void SetUp() override {
    Traffic::SetUp();
    apply(injected);
    for (const Place place : {Place::outside, Place::guest}) pod_->at(place).must({"nft", "-f", "-"}, counters(place));
    // A default route by net1, too, after eth0's.
    ip(pod_->ns(), fmt::format("route add default via {} dev net1 metric 4000\n", at().guest));
  }

  // What comes in there for this port, before anything else looks at it.
  [[nodiscard]] static std::string counters(Place place) {
    return fmt::format(
        "table netdev seen {{\n"
        "  counter redirected {{ }}\n"
        "  chain ingress {{\n"
        "    type filter hook ingress device {} priority 0\n"
        "    tcp dport 15001 counter name redirected\n"
        "  }}\n}}\n",
        place == Place::guest ? "net1" : "pod0");
  }

  // What connect() says at once to a socket that is bound; 0 if it sends.
  [[nodiscard]] int send_bound(const std::string& interface, const Endpoint& to) const {
    return pod_->ns().run(
        [&] {
          const FileDescriptor socket(
              check(::socket(to.domain(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket"));
          check(setsockopt(socket.get(), SOL_SOCKET, SO_BINDTODEVICE, interface.c_str(),
                           static_cast<socklen_t>(interface.size())),
                "SO_BINDTODEVICE");
          const sockaddr_storage address = to.socket_address();
          if (::connect(socket.get(), pointer(address), socket_address_size) == 0 || errno == EINPROGRESS) return 0;
          return errno;
        },
        app_identity);
  }

  // Waits for it.
  void expect_redirected(Place place) const {
    const auto guard = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    std::string seen;
    do {
      seen = pod_->at(place).must({"nft", "list", "counter", "netdev", "seen", "redirected"});
      if (seen.find("packets 0 ") == std::string::npos) return;
    } while (std::chrono::steady_clock::now() < guard);
    ADD_FAILURE() << "no packet came: " << seen;
  }

  [[nodiscard]] std::string explained(const std::string& interface, const Endpoint& to) const {
    std::vector<std::string> words{
        program_under_test(), "explain", "out", "tcp", to.text(), "--uid", "1000", "--gid", "1000",
        "--out-interface",    interface};
    return pod_->ns().program(words).out;
  }

  [[nodiscard]] std::string loopback_text(std::uint16_t port) const { return loopback(port).text(); }
};
INSTANTIATE_TEST_SUITE_P(, Bound, settings(), setting_name);

TEST_P(Bound, WhatIsRedirectedLeavesAndIsLost) {
  EXPECT_EQ(connect(as_app, service(9999)), landed(Role::proxy_outbound, original(service(9999))));
  EXPECT_THAT(explained("eth0", service(9999)),
              ::testing::AllOf(HasSubstr(fmt::format("leaves the pod by eth0 to {}", loopback_text(15001))),
                               HasSubstr(fmt::format("replies are lost: no host takes what comes from outside to {}",
                                                     at().any_loopback))));
  EXPECT_EQ(send_bound("eth0", service(9999)), 0);
  expect_redirected(Place::outside);
  EXPECT_EQ(send_bound("net1", service(9999)), 0);
  EXPECT_THAT(explained("net1", service(9999)), HasSubstr("leaves the pod by net1 to " + loopback_text(15001)));
  expect_redirected(Place::guest);
}

TEST_P(Bound, AnOwnAddressIsReachedByItsInterfaceAlone) {
  EXPECT_THAT(explained("eth0", pod(8080)), HasSubstr("lands on " + pod(8080).text()));
  Request request;
  request.to = pod(8080);
  request.interface = "eth0";
  const Landing landing = pod_->connect(as_app, request);
  EXPECT_EQ(landing, landed(Role::app, local(pod(8080))));
  EXPECT_THAT(explained("net1", pod(9999)), HasSubstr("leaves the pod by net1 to " + loopback_text(15001)));
  EXPECT_EQ(send_bound("net1", pod(9999)), 0);
  expect_redirected(Place::guest);
}

// connect() to a link-local address binds the socket to the interface of its scope.
TEST_P(Bound, WhatGoesToALinkLocalAddressIsNotRedirected) {
  if (family() == Family::ipv4) return;
  const std::string peer =
      pod_->at(Place::outside)
          .must({"sh", "-ec", "ip -6 -o address show dev pod0 scope link | grep -o 'fe80[^/]*' | tr -d '\n'"});
  const auto connected = [&] {
    return pod_->ns().run(
        [&] {
          const FileDescriptor socket(check(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
          const timeval guard{0, 500'000};
          check(setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &guard, sizeof guard), "SO_SNDTIMEO");
          sockaddr_storage address = Endpoint(peer, 80).socket_address();
          reinterpret_cast<sockaddr_in6&>(address).sin6_scope_id = if_nametoindex("eth0");
          return ::connect(socket.get(), pointer(address), socket_address_size) == 0;
        },
        app_identity);
  };
  const auto said = [&] {
    return pod_->ns()
        .program({program_under_test(), "explain", "out", "tcp", Endpoint(peer, 80).text(), "--uid", "1000", "--gid",
                  "1000"})
        .out;
  };
  EXPECT_FALSE(connected());
  EXPECT_THAT(said(), HasSubstr("leaves the pod by eth0 to [::1]:15001"));
  pod_->ns().must({"nft",
                   "add table ip6 others; add chain ip6 others out { type nat hook output priority -110; };"
                   "add rule ip6 others out ip6 daddr fe80::/10 accept"});
  // Of nat the first chain decides, whichever table it is in.
  EXPECT_EQ(connected(), said().starts_with("leaves the pod by eth0"));
}

// Answers come in by the interface that has their destination.
TEST_P(Bound, FromAnAddressOfAnotherInterfaceThereIsNoAnswer) {
  const Endpoint second(at().pod_second, 0);
  const std::string from = second.address.text();
  std::vector<std::string> words{
      program_under_test(), "explain", "out", "tcp", pod(8080).text(), "--uid", "1000", "--gid", "1000",
      "--out-interface",    "eth0"};
  const std::string without = pod_->ns().program(words).out;
  EXPECT_THAT(without, HasSubstr("lands on " + pod(8080).text()));
  EXPECT_THAT(without, ::testing::Not(HasSubstr("replies are lost")));
  words.insert(words.end(), {"--from", from});
  EXPECT_THAT(pod_->ns().program(words).out, HasSubstr("replies are lost: they do not come in by eth0"));
  Request request;
  request.to = pod(8080);
  request.interface = "eth0";
  request.from = second;
  request.patience = std::chrono::milliseconds(300);
  EXPECT_EQ(pod_->connect(as_app, request), landed(Role::no_answer));
}

TEST_P(Bound, OnlyIPv4IsSentByLo) {
  if (family() == Family::ipv6) {
    EXPECT_THAT(explained("lo", pod(8080)), HasSubstr("never sent: no route to"));
    EXPECT_EQ(send_bound("lo", pod(8080)), ENETUNREACH);
    return;
  }
  std::vector<std::string> words{program_under_test(),
                                 "explain",
                                 "out",
                                 "tcp",
                                 pod(8080).text(),
                                 "--uid",
                                 "1000",
                                 "--gid",
                                 "1000",
                                 "--out-interface",
                                 "lo",
                                 "--from",
                                 loopback(0).address.text()};
  EXPECT_THAT(pod_->ns().program(words).out, HasSubstr("lands on " + pod(8080).text()));
  Request request;
  request.to = pod(8080);
  request.interface = "lo";
  request.from = loopback(0);
  EXPECT_EQ(pod_->connect(as_app, request), landed(Role::app, local(pod(8080))));
}

TEST_P(Bound, OnlyIPv4IsSentWithoutARouteOfTheInterface) {
  ip(pod_->ns(), fmt::format("route del default via {} dev net1\nroute add unreachable {} metric 5\n", at().guest,
                             at().service_range));
  for (const Endpoint& to : {other_service(9999), service(9999)}) {
    SCOPED_TRACE(to.text());
    const std::string said = explained("net1", to);
    if (family() == Family::ipv4) {
      EXPECT_THAT(said, HasSubstr("leaves the pod by net1 to"));
      EXPECT_EQ(send_bound("net1", to), 0);
    } else {
      EXPECT_THAT(said, HasSubstr("never sent: no route to " + to.address.text()));
      EXPECT_EQ(send_bound("net1", to), ENETUNREACH);
    }
  }
}

// What rejects stands before a route that is less precise, unless it is of IPv6: there it is a route by lo.
TEST_P(Bound, IPv6PassesByRoutesThatReject) {
  ip(pod_->ns(), fmt::format("route add unreachable {} metric 5\n", at().service_range));
  EXPECT_THAT(pod_->ns()
                  .program({program_under_test(), "explain", "out", "tcp", service(9999).text(), "--uid", "1337",
                            "--gid", "1337"})
                  .out,
              HasSubstr("never sent: no route"));
  EXPECT_THAT(explained("eth0", service(9999)), HasSubstr("leaves the pod by eth0 to " + loopback_text(15001)));
  EXPECT_EQ(send_bound("eth0", service(9999)), 0);
  expect_redirected(Place::outside);
}

}  // namespace
}  // namespace sidetrack::netns
