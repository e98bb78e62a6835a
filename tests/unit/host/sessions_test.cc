// SPDX-License-Identifier: GPL-2.0-or-later
// By which connections somebody works here, in a network namespace of its own whose two hosts are both on the loopback
// interface.
#include "host/sessions.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <regex>

#include "support/cannot_run.h"
#include "system/descriptor.h"
#include "unit/apart.h"

namespace sidetrack {
namespace {

using testing::apart;

constexpr std::uint16_t client_port = 40000;

bool enter_network() {
  return testing::enter_new(CLONE_NEWNET) &&
         system(
             "ip link set lo up && ip address add 192.0.2.1/32 dev lo && ip address add 192.0.2.2/32 dev lo && "
             "ip address add 2001:db8::1/128 dev lo nodad && ip address add 2001:db8::2/128 dev lo nodad") == 0;
}

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

SocketAddress at(const std::string& text, std::uint16_t port) {
  const Address address = *Address::parse(text);
  SocketAddress made;
  if (address.family == Family::ipv6) {
    auto* const to = reinterpret_cast<sockaddr_in6*>(&made.storage);
    to->sin6_family = AF_INET6;
    to->sin6_port = htons(port);
    std::memcpy(&to->sin6_addr, address.bytes.data(), address.size());
    made.size = sizeof *to;
  } else {
    auto* const to = reinterpret_cast<sockaddr_in*>(&made.storage);
    to->sin_family = AF_INET;
    to->sin_port = htons(port);
    std::memcpy(&to->sin_addr, address.bytes.data(), address.size());
    made.size = sizeof *to;
  }
  return made;
}

struct Held {
  const char* holder;  // the name of the process that holds both ends
  std::uint16_t port;
  const char* server = "192.0.2.2";
  const char* client = "192.0.2.1";
  bool listens = true;  // still
};

// Both ends, and what listens.
std::vector<Descriptor> connection(const Held& held) {
  std::vector<Descriptor> ends;
  const SocketAddress server = at(held.server, held.port);
  const SocketAddress client = at(held.client, client_port);
  Descriptor listening(socket(server.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Descriptor opened(socket(server.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(opened.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listening.get(), server.get(), server.size) != 0 || listen(listening.get(), 1) != 0 ||
      bind(opened.get(), client.get(), client.size) != 0 || connect(opened.get(), server.get(), server.size) != 0)
    return ends;
  ends.emplace_back(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ends.push_back(std::move(opened));
  if (held.listens) ends.push_back(std::move(listening));
  return ends;
}

// A line for each, in order; the numbers of processes are left out.
std::string asked(const std::string& ssh_connection) {
  const Sessions found = find_sessions(ssh_connection);
  std::vector<std::string> lines = found.unknown;
  for (const Session& each : found.list) {
    lines.push_back(fmt::format("{} {} {} ({})", each.socket.local.text(), each.inbound ? "from" : "to",
                                each.socket.remote.text(), each.holder));
  }
  std::ranges::sort(lines);
  return std::regex_replace(fmt::format("{}", fmt::join(lines, "; ")), std::regex("process [0-9]+"), "process N");
}

// Of a process that is beside the one that asks.
std::string beside(const Held& held, const std::string& ssh_connection = "") {
  return apart([&]() -> std::string {
    int ends[2];
    if (!enter_network() || pipe2(ends, O_CLOEXEC) != 0) return "skip";
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      prctl(PR_SET_NAME, held.holder);
      const std::vector<Descriptor> sockets = connection(held);
      static_cast<void>(!write(ends[1], sockets.empty() ? "-" : "x", 1));
      for (;;) pause();
    }
    char letter = 0;
    if (read(ends[0], &letter, 1) != 1 || letter == '-') return "no connection";
    return asked(ssh_connection);
  });
}

// Of one that the one that asks descends from.
std::string above(const Held& held) {
  return apart([&]() -> std::string {
    if (!enter_network()) return "skip";
    prctl(PR_SET_NAME, held.holder);
    const std::vector<Descriptor> sockets = connection(held);
    return sockets.empty() ? "no connection" : apart([] { return asked(""); });
  });
}

class SessionsHere : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) return cannot_run("it takes root to look at the processes above");
    if (apart([] { return std::string(enter_network() ? "" : "skip"); }) == "skip")
      return cannot_run("it takes a network namespace");
  }
};

TEST_F(SessionsHere, OfServersOfSshAreThoseThatTheOtherHostOpened) {
  for (const char* server : {"sshd", "sshd-session", "sshd-auth", "dropbear"}) {
    const std::string said = fmt::format("192.0.2.2:2222 from 192.0.2.1:40000 ({}, process N)", server);
    EXPECT_EQ(beside({server, 2222}), said);
    EXPECT_EQ(above({server, 2222}), said);
  }
  EXPECT_EQ(beside({"sshd", 2222, "2001:db8::2", "2001:db8::1"}),
            "[2001:db8::2]:2222 from [2001:db8::1]:40000 (sshd, process N)");
  for (const char* other : {"ssh", "sshd2", "nginx"}) EXPECT_EQ(beside({other, 2222}), "") << other;
  // Whether the other host opened it tells the socket that listens there, or the port of ssh.
  EXPECT_EQ(beside({"sshd", 2222, "192.0.2.2", "192.0.2.1", false}), "");
  EXPECT_EQ(beside({"sshd", 22, "192.0.2.2", "192.0.2.1", false}),
            "192.0.2.2:22 from 192.0.2.1:40000 (sshd, process N)");
}

TEST_F(SessionsHere, AtThePortOfSshWhoeverServesIt) {
  EXPECT_EQ(beside({"nginx", 22}), "192.0.2.2:22 from 192.0.2.1:40000 (port 22)");
  EXPECT_EQ(beside({"nginx", 23}), "");
}

TEST_F(SessionsHere, OfAnAncestorAreBothWays) {
  EXPECT_EQ(above({"agent\x1b", 9000}),
            "192.0.2.1:40000 to 192.0.2.2:9000 (agent\\x1b, process N); "
            "192.0.2.2:9000 from 192.0.2.1:40000 (agent\\x1b, process N)");
}

TEST_F(SessionsHere, OfLoopbackOrOfOneAddressAreNone) {
  EXPECT_EQ(beside({"sshd", 22, "127.0.0.1", "127.0.0.1"}), "");
  EXPECT_EQ(beside({"sshd", 22, "127.0.0.1", "192.0.2.1"}), "");
  EXPECT_EQ(beside({"sshd", 22, "192.0.2.1", "127.0.0.1"}), "");
  EXPECT_EQ(beside({"sshd", 22, "192.0.2.1", "192.0.2.1"}), "");
  EXPECT_EQ(beside({"sshd", 22, "::1", "::1"}), "");
}

TEST_F(SessionsHere, ThatOneIsNamedByTheEnvironment) {
  const std::string said = "192.0.2.2:9000 from 192.0.2.1:40000 (SSH_CONNECTION)";
  const Held nginx{"nginx", 9000};
  EXPECT_EQ(beside(nginx, "192.0.2.1 40000 192.0.2.2 9000"), said);
  EXPECT_EQ(beside(nginx, "192.0.2.1%eth0 40000 192.0.2.2%eth0 9000"), said);
  EXPECT_EQ(beside({"nginx", 9000, "192.0.2.2", "192.0.2.1", false}, "192.0.2.1 40000 192.0.2.2 9000"), said);
  for (const char* other :
       {"", "192.0.2.1 40000 192.0.2.2", "192.0.2.1 40000 192.0.2.2 9000 x", "192.0.2.1 40001 192.0.2.2 9000",
        "192.0.2.1 40000 192.0.2.2 9001", "192.0.2.3 40000 192.0.2.2 9000", "192.0.2.1 40000 192.0.2.3 9000",
        "192.0.2.1 40000 host 9000", "192.0.2.1 x 192.0.2.2 9000"})
    EXPECT_EQ(beside(nginx, other), "") << other;
}

TEST_F(SessionsHere, MayBeThereIfThereIsASocket) {
  const auto may_be = [](const char* address) {
    return apart([&]() -> std::string {
      if (!enter_network()) return "skip";
      const std::string before = may_have_sessions() ? "some " : "none ";
      const SocketAddress there = at(address, 9000);
      const Descriptor listening(socket(there.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (bind(listening.get(), there.get(), there.size) != 0 || listen(listening.get(), 1) != 0) return "no socket";
      return before + (may_have_sessions() ? "some" : "none");
    });
  };
  EXPECT_EQ(may_be("192.0.2.1"), "none some");
  EXPECT_EQ(may_be("2001:db8::1"), "none some");
}

TEST_F(SessionsHere, AreTakenUpAsTheKernelIsTold) {
  const std::string said = apart([]() -> std::string {
    if (!enter_network()) return "skip";
    const std::vector<Descriptor> sockets = connection({"unit_tests", 22});
    const bool before = find_sessions("").taken_up;
    std::ofstream file("/proc/sys/net/netfilter/nf_conntrack_tcp_loose");
    file << "0\n" << std::flush;
    if (!file) return "skip";
    return fmt::format("{} {}", before, find_sessions("").taken_up);
  });
  if (said == "skip") return cannot_run("the kernel tracks no connections");
  EXPECT_EQ(said, "true false");
}

}  // namespace
}  // namespace sidetrack
