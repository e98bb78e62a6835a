// SPDX-License-Identifier: GPL-2.0-or-later
// Settings of the kernel (sysctl) that decide where packets end, beside the rules; rp_filter and src_valid_mark have
// tests of their own.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>

#include <array>
#include <functional>

#include "support/network.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class KernelSettings : public Traffic {
 protected:
  [[nodiscard]] std::string explained(const char* way, const char* protocol, const std::string& to,
                                      const std::string& from) const {
    return pod_->ns().must({program_under_test(), "explain", way, protocol, to, "--from", from, "--brief"});
  }
  [[nodiscard]] std::string from_client(const Endpoint& to) const {
    return explained("in", "tcp", to.text(), std::string(at().client));
  }
  [[nodiscard]] static std::string table(Family family) { return family == Family::ipv4 ? "ip" : "ip6"; }
};
INSTANTIATE_TEST_SUITE_P(, KernelSettings, settings(), setting_name);

// route_localnet: loopback addresses come in, and answers from them go out.
TEST_P(KernelSettings, LoopbackAddressesComeInWhereRouteLocalnetIsSet) {
  if (family() == Family::ipv6) return;  // has no such setting
  apply(injected);
  pod_->ns().must({"nft",
                   "add table ip others; add chain ip others in { type nat hook prerouting priority -110; };"
                   "add rule ip others in tcp dport 8080 dnat to 127.0.0.1:8081"});
  for (const char* of : {"all", "eth0"}) {
    EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::no_answer));
    EXPECT_THAT(from_client(pod(8080)), HasSubstr("dropped: 127.0.0.1 cannot come in by eth0 (martian)"));
    set_sysctl(pod_->ns(), fmt::format("ipv4/conf/{}/route_localnet", of), "1");
    EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::app, original(pod(8080))));
    const std::string said = from_client(pod(8080));
    EXPECT_THAT(said, HasSubstr("lands on 127.0.0.1:8081"));
    EXPECT_THAT(said, Not(HasSubstr("replies")));
    set_sysctl(pod_->ns(), fmt::format("ipv4/conf/{}/route_localnet", of), "0");
  }
  set_sysctl(pod_->ns(), "ipv4/conf/net1/route_localnet", "1");  // of another interface
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::no_answer));
  EXPECT_THAT(from_client(pod(8080)), HasSubstr("dropped: 127.0.0.1 cannot come in by eth0 (martian)"));
}

// accept_local: what comes in from one of the pod's own addresses is counted in INPUT, or is not.
TEST_P(KernelSettings, OwnSourcesComeInWhereAcceptLocalIsSet) {
  if (family() == Family::ipv6) return;  // has no such setting
  const Namespace& inside = pod_->ns();
  const Namespace& outside = pod_->at(Place::outside);
  inside.must({"nft",
               "add table ip seen; add counter ip seen own; add counter ip seen other;"
               "add chain ip seen in { type filter hook input priority 0; };"
               "add rule ip seen in udp dport 5000 ip saddr 10.2.0.2 counter name own;"
               "add rule ip seen in udp dport 5000 ip saddr 10.1.0.1 counter name other"});
  ip(outside, "addr add 10.2.0.2/32 dev lo\n");
  // Whether it comes in: the second datagram, from another source, comes after it.
  const auto comes_in = [&] {
    outside.run([&] {
      for (const char* from : {"10.2.0.2", "10.1.0.1"}) {
        const FileDescriptor socket(check(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket"));
        const sockaddr_storage own = Endpoint(from, 0).socket_address();
        const sockaddr_storage to = pod(5000).socket_address();
        check(::bind(socket.get(), pointer(own), socket_address_size), "bind");
        check(::sendto(socket.get(), "x", 1, 0, pointer(to), socket_address_size), "sendto");
      }
    });
    const auto count = [&](const char* which) {
      return inside.must({"nft", "list", "counter", "ip", "seen", which}).find("packets 0 ") == std::string::npos;
    };
    const auto guard = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!count("other") && std::chrono::steady_clock::now() < guard) {
    }
    const bool came = count("own");
    inside.must({"nft", "reset", "counters", "table", "ip", "seen"});
    return came;
  };
  const auto said = [&] { return explained("in", "udp", pod(5000).text(), "10.2.0.2"); };
  for (const char* of : {"all", "eth0"}) {
    EXPECT_FALSE(comes_in());
    EXPECT_THAT(said(), HasSubstr("dropped: 10.2.0.2 cannot come in by eth0 (martian)"));
    set_sysctl(inside, fmt::format("ipv4/conf/{}/accept_local", of), "1");
    EXPECT_TRUE(comes_in());
    EXPECT_THAT(said(), HasSubstr("lands on 10.1.0.2:5000"));
    // With a route of type local beside the own addresses every source is looked up.
    ip(inside, "route add local 203.0.113.0/24 dev lo table 133\n");
    EXPECT_TRUE(comes_in());
    EXPECT_THAT(said(), HasSubstr("lands on 10.1.0.2:5000"));
    ip(inside, "route del local 203.0.113.0/24 dev lo table 133\n");
    set_sysctl(inside, fmt::format("ipv4/conf/{}/accept_local", of), "0");
  }
}

// disable_ipv6: of lo, what is sent to an address of the pod is dropped, though that address is another interface's.
TEST_P(KernelSettings, NothingPassesLoWhereIPv6IsOffThere) {
  if (family() == Family::ipv4) return;
  const auto said = [&] {
    return pod_->ns().must({program_under_test(), "explain", "lo", "tcp", pod(8080).text(), "--brief"});
  };
  EXPECT_EQ(connect(as_app, pod(8080)), landed(Role::app, local(pod(8080))));
  EXPECT_THAT(said(), HasSubstr("lands on"));
  set_sysctl(pod_->ns(), "ipv6/conf/lo/disable_ipv6", "1");
  EXPECT_EQ(connect(as_app, pod(8080)), landed(Role::no_answer));
  EXPECT_THAT(said(), HasSubstr("dropped: IPv6 is off on lo (net.ipv6.conf.lo.disable_ipv6)"));
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::app, local(pod(8080))));
}

// tcp_fwmark_accept: a rule of others marks what comes in, a policy rule of others takes what has the mark elsewhere.
TEST_P(KernelSettings, AcceptedConnectionsHaveTheMarkWhereItIsSet) {
  apply(injected);
  const Namespace& inside = pod_->ns();
  const std::string of = table(family());
  inside.must(
      {"nft", fmt::format("add table {0} marks; add chain {0} marks in {{ type filter hook input priority 0; }};"
                          "add rule {0} marks in tcp dport 15006 meta mark set 7;"
                          "add chain {0} marks out {{ type filter hook output priority 0; }};"
                          "add rule {0} marks out meta mark 7 drop",
                          of)});
  const Landing lands = landed(Role::proxy_inbound, original(pod(8080)));
  EXPECT_EQ(connect(from_outside, pod(8080)), lands);
  EXPECT_THAT(from_client(pod(8080)), Not(HasSubstr("lost")));
  set_sysctl(inside, "ipv4/tcp_fwmark_accept", "1");
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::no_answer));
  EXPECT_THAT(from_client(pod(8080)),
              HasSubstr("replies are lost: tcp_fwmark_accept is 1, so they have the mark 0x7: dropped: by rule 1 of"));
  inside.must({"nft", fmt::format("flush chain {} marks out", of)});
  EXPECT_EQ(connect(from_outside, pod(8080)), lands);
  EXPECT_THAT(from_client(pod(8080)), Not(HasSubstr("lost")));
}

// Two pings, the first one longer: whether an answer to it comes before that to the second one. `between`: is done
// when the first one was taken.
bool is_long_ping_answered(
    const Namespace& where, const Endpoint& to, const std::function<void()>& between = [] {}) {
  const bool ipv4 = to.address.family == Family::ipv4;
  bool answered = false;
  where.run([&] {
    const int protocol = ipv4 ? int{IPPROTO_ICMP} : int{IPPROTO_ICMPV6};
    const FileDescriptor socket(check(::socket(to.domain(), SOCK_RAW | SOCK_CLOEXEC, protocol), "socket"));
    const timeval guard{10, 0};
    check(setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &guard, sizeof guard), "SO_RCVTIMEO");
    const sockaddr_storage address = to.socket_address();
    check(::connect(socket.get(), pointer(address), socket_address_size), "connect");
    for (const std::size_t size : {64U, 16U}) {
      std::array<std::uint8_t, 64> echo{};  // type, code, checksum, id, number; the rest is empty
      echo[0] = ipv4 ? std::uint8_t{ICMP_ECHO} : std::uint8_t{ICMP6_ECHO_REQUEST};
      const auto sum = static_cast<std::uint16_t>(~(echo[0] << 8U));  // of ICMPv6 the kernel's
      if (ipv4) echo[2] = static_cast<std::uint8_t>(sum >> 8U), echo[3] = static_cast<std::uint8_t>(sum);
      check(::send(socket.get(), echo.data(), size, 0), "send");
      if (size == 64) between();
    }
    const std::uint8_t reply = ipv4 ? std::uint8_t{ICMP_ECHOREPLY} : std::uint8_t{ICMP6_ECHO_REPLY};
    for (;;) {
      std::array<std::uint8_t, 256> packet{};
      const auto size = static_cast<std::size_t>(check(::recv(socket.get(), packet.data(), packet.size(), 0), "recv"));
      const std::size_t header = ipv4 ? sizeof(iphdr) : 0;
      if (packet[header] != reply) continue;
      if (size == header + 16) return;
      answered = true;
    }
  });
  return answered;
}

// fwmark_reflect: of what the kernel itself answers.
TEST_P(KernelSettings, PingsAreAnsweredWithTheirMarkWhereItIsSet) {
  const Namespace& inside = pod_->ns();
  const std::string of = table(family());
  const int length = family() == Family::ipv4 ? 20 + 64 : 40 + 64;
  inside.must(
      {"nft", fmt::format("add table {0} marks; add chain {0} marks in {{ type filter hook input priority 0; }};"
                          "add rule {0} marks in meta l4proto {{ icmp, icmpv6 }} meta length {1} meta mark set 7;"
                          "add chain {0} marks out {{ type filter hook output priority 0; }};"
                          "add rule {0} marks out meta mark 7 drop",
                          of, length)});
  const Namespace& outside = pod_->at(Place::outside);
  EXPECT_TRUE(is_long_ping_answered(outside, pod(0)));
  set_sysctl(inside, family() == Family::ipv4 ? "ipv4/fwmark_reflect" : "ipv6/fwmark_reflect", "1");
  EXPECT_FALSE(is_long_ping_answered(outside, pod(0)));
  // The length is not known to explain, so here all are marked.
  inside.must({"nft", fmt::format("flush chain {0} marks in; add rule {0} marks in meta mark set 7", of)});
  const auto said = [&] { return explained("in", "icmp", std::string(at().pod), std::string(at().client)); };
  EXPECT_THAT(said(),
              HasSubstr("replies are lost: fwmark_reflect is 1, so they have the mark 0x7: dropped: by rule 1 of"));
  EXPECT_THAT(explained("in", "udp", pod(5000).text(), std::string(at().client)), Not(HasSubstr("lost")));
  for (const char* version : {"ipv4", "ipv6"}) set_sysctl(inside, fmt::format("{}/fwmark_reflect", version), "0");
  EXPECT_THAT(said(), Not(HasSubstr("lost")));
}

TEST_P(KernelSettings, PingsAreNotAnsweredWhereTheyAreIgnored) {
  const Namespace& inside = pod_->ns();
  const Namespace& outside = pod_->at(Place::outside);
  const char* setting = family() == Family::ipv4 ? "ipv4/icmp_echo_ignore_all" : "ipv6/icmp/echo_ignore_all";
  const auto said = [&] { return explained("in", "icmp", std::string(at().pod), std::string(at().client)); };
  EXPECT_TRUE(is_long_ping_answered(outside, pod(0)));
  EXPECT_THAT(said(), Not(HasSubstr("lost")));
  set_sysctl(inside, setting, "1");
  EXPECT_THAT(said(), HasSubstr("replies are lost: the kernel answers no ping"));
  EXPECT_THAT(explained("in", "udp", pod(5000).text(), std::string(at().client)), Not(HasSubstr("lost")));
  EXPECT_FALSE(is_long_ping_answered(outside, pod(0), [&] { set_sysctl(inside, setting, "0"); }));
}

}  // namespace
}  // namespace sidetrack::netns
