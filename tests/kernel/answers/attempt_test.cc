// SPDX-License-Identifier: GPL-2.0-or-later
// Single attempts of `verify --probe`, where the kernel or the moment is unusual.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <future>

#include "probe/socket_table.h"
#include "probe/trial.h"
#include "support/backend_test.h"
#include "support/network.h"
#include "support/quiet_pod.h"
#include "support/refused_call.h"

namespace sidetrack::netns {
namespace {

using probe::Clock;
using ::testing::HasSubstr;

struct AttemptTest : KernelTest {
  static Clock::time_point within(std::chrono::milliseconds time) { return Clock::now() + time; }
};

// Without its filter a datagram from elsewhere would count as one from inside: none is sent.
TEST_F(AttemptTest, ADatagramThatCannotBeFilteredIsNotSent) {
  const QuietPod pod(Family::ipv4);
  const probe::Landing landing = pod.ns().run([&] {
    refuse_call(SYS_setsockopt, 2, SO_ATTACH_FILTER, EPERM);
    probe::SourcePorts ports;
    const Address to = *Address::parse("192.0.2.1");
    return probe::land({.protocol = Protocol::udp, .as = {0, 0}, .to = {to, 53}}, {}, ports, within({}));
  });
  EXPECT_EQ(landing.kind, probe::Landing::Kind::not_sent);
  EXPECT_EQ(landing.error, EPERM);
  EXPECT_EQ(pod.came_out(), 0);
}

// Without IPv6 in the kernel there is no such table; one that may not be read is another matter.
TEST_F(AttemptTest, ATableOfSocketsThatIsNotThereIsEmpty) {
  const Namespace space;
  const auto ports_when = [&](int error) {
    return error_in(space, [&] {
      refuse_call(SYS_openat, 2, O_RDONLY | O_CLOEXEC, error);
      EXPECT_TRUE(probe::peer_ports().empty());
      EXPECT_EQ(probe::other_end({Address::loopback(Family::ipv6), 80}), std::nullopt);
    });
  };
  EXPECT_EQ(ports_when(ENOENT).code(), ExitCode::done);
  EXPECT_STREQ(ports_when(EMFILE).what(), "cannot read /proc/thread-self/net/tcp: Too many open files (EMFILE)");
}

// Of each connection both ends, by the addresses that they have, whatever the family of their sockets.
TEST_F(AttemptTest, TheTableOfSocketsTellsTheOtherEnd) {
  const Namespace space;
  ip(space, "link set lo up\naddr add 10.1.2.3/32 dev lo\naddr add fd00:1::2:3/128 dev lo nodad\n");
  space.run([] {
    const auto any = [](Family family) { return probe::Binding{{Address::any(family), 0}}; };
    EXPECT_TRUE(probe::peer_ports().empty());
    for (const auto& [at, listens, from] : {std::tuple{"10.1.2.3", Family::ipv4, "127.0.0.1"},
                                            {"10.1.2.3", Family::ipv4, "10.1.2.3"},
                                            {"fd00:1::2:3", Family::ipv6, "::1"}}) {
      const probe::Listener listener = probe::listen_at(Protocol::tcp, any(listens), probe::Sharing::always);
      const Endpoint server{*Address::parse(at), probe::own_end(listener.socket.get()).port};
      const Descriptor client = probe::open_socket(Protocol::tcp, server.address.family);
      const probe::SocketAddress source({*Address::parse(from), 0}), to(server);
      ASSERT_EQ(bind(client.get(), source.get(), probe::SocketAddress::size()), 0);
      EXPECT_TRUE(connect(client.get(), to.get(), probe::SocketAddress::size()) == 0 || errno == EINPROGRESS);
      const Endpoint own = probe::own_end(client.get());
      EXPECT_EQ(probe::other_end(own), server);
      EXPECT_EQ(probe::other_end(server), own);
      EXPECT_EQ(probe::other_end({own.address, 1}), std::nullopt);
      EXPECT_EQ(probe::other_end({*Address::parse("10.1.2.4"), own.port}), std::nullopt);
      const std::set<std::uint16_t> ports = probe::peer_ports();
      EXPECT_TRUE(ports.contains(own.port.value()));
      EXPECT_TRUE(ports.contains(server.port.value()));
    }
  });
}

// One of IPv4 that an IPv6 socket has taken is in the other table.
TEST_F(AttemptTest, TheTableOfSocketsTellsTheOtherEndOfMappedAddresses) {
  const Namespace space;
  ip(space, "link set lo up\n");
  space.run([] {
    const FileDescriptor listener(check(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
    check(listen(listener.get(), 1), "listen");
    const Endpoint server{Address::loopback(Family::ipv4), probe::own_end(listener.get()).port};
    const Descriptor client = probe::open_socket(Protocol::tcp, Family::ipv4);
    const probe::SocketAddress to(server);
    EXPECT_TRUE(connect(client.get(), to.get(), probe::SocketAddress::size()) == 0 || errno == EINPROGRESS);
    const Endpoint own = probe::own_end(client.get());
    EXPECT_EQ(probe::other_end(own), server);
    EXPECT_EQ(probe::other_end(server), own);
    EXPECT_TRUE(probe::peer_ports().contains(own.port.value()));
  });
}

// A connection, and a datagram, to each kind of port. Afterwards no socket of it is left.
TEST_F(AttemptTest, WhereItLands) {
  const Namespace space;
  ip(space, "link set lo up\n");
  space.run([] {
    using Kind = probe::Landing::Kind;
    const auto listening = [](Protocol protocol, Family family) {
      return probe::listen_at(protocol, {{Address::any(family), 0}}, probe::Sharing::if_free);
    };
    for (const Family family : {Family::ipv4, Family::ipv6}) {
      const Address at = Address::loopback(family);
      std::vector<probe::Listener> listeners;
      for (const Protocol protocol : {Protocol::tcp, Protocol::udp}) {
        listeners.push_back(listening(protocol, family));
        listeners.back().port = probe::own_end(listeners.back().socket.get()).port.value();
        ASSERT_EQ(listeners.back().state, probe::Listener::State::ours);
      }
      const probe::Listener of_others = listening(Protocol::tcp, family);
      const Endpoint others{at, probe::own_end(of_others.socket.get()).port};
      probe::SourcePorts ports;
      const auto land = [&](Protocol protocol, const Endpoint& to, bool complete) {
        return probe::land({.protocol = protocol, .as = {1000, 1000}, .to = to, .complete = complete}, listeners, ports,
                           within(std::chrono::seconds(10)));
      };
      for (const probe::Listener& ours : listeners) {
        const Endpoint to{at, ours.port};
        const std::set<std::uint16_t> before = probe::peer_ports();
        const probe::Landing taken = land(ours.protocol, to, true);
        EXPECT_EQ(taken.kind, Kind::taken);
        EXPECT_EQ(taken.listener, ours.port);
        if (ours.protocol == Protocol::tcp) {
          EXPECT_EQ(taken.at, to);
        }
        EXPECT_EQ(taken.original, std::nullopt) << "nothing has translated it";
        EXPECT_EQ(probe::peer_ports(), before) << "left behind";
      }
      const probe::Landing half = land(Protocol::tcp, {at, listeners.front().port}, false);
      EXPECT_EQ(half.kind, Kind::seen);
      EXPECT_EQ(half.listener, listeners.front().port);
      EXPECT_EQ(half.at, (Endpoint{at, listeners.front().port}));
      for (const bool complete : {false, true}) {
        const probe::Landing seen = land(Protocol::tcp, others, complete);
        EXPECT_EQ(seen.kind, Kind::seen);
        EXPECT_EQ(seen.listener, 0);
        EXPECT_EQ(seen.at, others);
      }
      EXPECT_EQ(land(Protocol::tcp, {at, 9}, true).kind, Kind::refused);
      EXPECT_EQ(land(Protocol::udp, {at, 9}, true).kind, Kind::refused);
      EXPECT_EQ(land(Protocol::udp, {at, 9}, true).error, ECONNREFUSED);
    }
  });
}

TEST_F(AttemptTest, WhatNobodyAnswersIsWaitedForUntilTheDeadline) {
  const Namespace space;
  ip(space, "link set lo up\n");
  space.must({"nft", "add table inet t; add chain inet t c { type filter hook input priority 0; policy drop; }"});
  for (const Protocol protocol : {Protocol::tcp, Protocol::udp}) {
    const auto start = Clock::now();
    const probe::Landing landing = space.run([&] {
      probe::SourcePorts ports;
      return probe::land({.protocol = protocol, .as = {0, 0}, .to = {Address::loopback(Family::ipv4), 80}}, {}, ports,
                         within(std::chrono::milliseconds(250)));
    });
    EXPECT_EQ(landing.kind, probe::Landing::Kind::unanswered);
    EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(250));
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(60));
  }
}

// An address of this pod has its route a moment later: what went out before that is tried again.
TEST_F(AttemptTest, AnAddressWithoutItsRouteIsTriedAgain) {
  const QuietPod pod(Family::ipv6);
  ip(pod.ns(), "addr add fd00:5::1/128 dev lo nodad noprefixroute\n");
  // The kernel adds it in the background.
  pod.ns().must({"sh", "-c", "until ip -6 route del local fd00:5::1 dev lo table local 2>/dev/null; do :; done"});
  auto trying = std::async(std::launch::async, [&] {
    return pod.ns().run([&] {
      probe::SourcePorts ports;
      probe::Trial trial;
      trial.attempt = {.as = {0, 0}, .from = Address::parse("fd00:1::2"), .to = {*Address::parse("fd00:5::1"), 80}};
      return probe::carry_out(trial, {}, ports, within(std::chrono::seconds(30)));
    });
  });
  const auto guard = within(std::chrono::seconds(20));
  while (pod.came_out() == 0) ASSERT_LT(Clock::now(), guard);
  ip(pod.ns(), "route add local fd00:5::1 dev lo table local\n");
  const ProbeResult result = trying.get();
  EXPECT_EQ(result.verdict, ProbeResult::Verdict::ok) << result.finding;
  EXPECT_THAT(result.finding, HasSubstr("[fd00:5::1]:80 is left alone"));
}

}  // namespace
}  // namespace sidetrack::netns
