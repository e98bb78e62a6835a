// SPDX-License-Identifier: GPL-2.0-or-later
// The source address that the kernel gives to what is sent without one, and the route that it takes then.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/socket.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <random>

#include "model/scan.h"
#include "support/network.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::HasSubstr;

class Source : public Traffic {
 protected:
  enum class How { connected, sent_to };

  // Sends one packet without waiting for anything.
  void send_one(int type, How how, const Endpoint& to, const std::optional<Endpoint>& from) const {
    pod_->ns().run(
        [&] {
          const FileDescriptor socket(check(::socket(to.domain(), type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket"));
          if (from) {
            const sockaddr_storage own = from->socket_address();
            check(::bind(socket.get(), pointer(own), socket_address_size), "bind");
          }
          const sockaddr_storage address = to.socket_address();
          if (how == How::sent_to) {
            check(::sendto(socket.get(), "x", 1, 0, pointer(address), socket_address_size), "sendto");
            return;
          }
          if (::connect(socket.get(), pointer(address), socket_address_size) != 0 && errno != EINPROGRESS)
            throw std::runtime_error("connect");
          if (type == SOCK_DGRAM) check(::send(socket.get(), "x", 1, 0), "send");
        },
        proxy_identity);
  }

  [[nodiscard]] std::string explained(const char* protocol, const Endpoint& to, const std::string& from = {}) const {
    std::vector<std::string> words{
        program_under_test(), "explain", "out", protocol, to.text(), "--uid", "1337", "--gid", "1337"};
    if (!from.empty()) words.insert(words.end(), {"--from", from});
    return pod_->ns().program(words).out;
  }
};
INSTANTIATE_TEST_SUITE_P(, Source, settings(), setting_name);

// A policy rule for a source address. What has chosen none is looked up without; connect() looks up once more, with it,
// in IPv4.
TEST_P(Source, IsChosenBeforeOrAfterTheRoute) {
  apply(injected);
  const auto counters = [](const char* device) {
    return fmt::format(
        "table netdev seen {{\n"
        "  counter of_tcp {{ }}\n  counter of_udp {{ }}\n"
        "  chain ingress {{\n    type filter hook ingress device {} priority 0\n"
        "    tcp dport 9999 counter name of_tcp\n    udp dport 9999 counter name of_udp\n  }}\n}}\n",
        device);
  };
  pod_->at(Place::outside).must({"nft", "-f", "-"}, counters("pod0"));
  pod_->at(Place::guest).must({"nft", "-f", "-"}, counters("net1"));
  const bool ipv4 = family() == Family::ipv4;
  const std::string own = pod(0).address.text();
  pod_->ns().must({"ip", ipv4 ? "-4" : "-6", "rule", "add", "from", own, "table", "77", "priority", "50"});
  ip(pod_->ns(), fmt::format("route add default via {} dev net1 table 77\n", at().guest));
  const auto arrives = [&](const char* protocol) -> std::string {
    const auto guard = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    do {
      for (const Place place : {Place::outside, Place::guest}) {
        const std::string seen =
            pod_->at(place).must({"nft", "reset", "counter", "netdev", "seen", fmt::format("of_{}", protocol)});
        if (seen.find("packets 0 ") == std::string::npos) return place == Place::outside ? "eth0" : "net1";
      }
    } while (std::chrono::steady_clock::now() < guard);
    return "nowhere";
  };
  struct Case {
    const char* protocol;
    How how;
    bool from_own;
    const char* device;
    const char* said;
  };
  const char* unknown = "unknown: whether its socket is connected (if it is not: leaves the pod by eth0";
  const Case cases[] = {
      {"tcp", How::connected, false, ipv4 ? "net1" : "eth0",
       ipv4 ? "leaves the pod by net1" : "leaves the pod by eth0"},
      {"udp", How::connected, false, ipv4 ? "net1" : "eth0", ipv4 ? unknown : "leaves the pod by eth0"},
      {"udp", How::sent_to, false, "eth0", ipv4 ? unknown : "leaves the pod by eth0"},
      {"tcp", How::connected, true, "net1", "leaves the pod by net1"},
      {"udp", How::connected, true, "net1", "leaves the pod by net1"},
      {"udp", How::sent_to, true, "net1", "leaves the pod by net1"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(
        fmt::format("{} {} {}", one.protocol, one.how == How::sent_to ? "sendto()" : "connect()", one.from_own));
    const bool tcp = std::string_view(one.protocol) == "tcp";
    send_one(tcp ? SOCK_STREAM : SOCK_DGRAM, one.how, service(9999),
             one.from_own ? std::optional(pod(0)) : std::nullopt);
    EXPECT_EQ(arrives(one.protocol), one.device);
    EXPECT_THAT(explained(one.protocol, service(9999), one.from_own ? own : ""), HasSubstr(one.said));
  }
}

class Ipv6Source : public KernelTest {};

// Of random addresses on three interfaces: the one that the kernel gives to a socket.
TEST_F(Ipv6Source, IsTheOneOfRfc6724) {
  const Namespace pod;
  const Namespace other;
  trust_addresses(pod);
  trust_addresses(other);
  join(pod, "eth0", other, "eth0");
  join(pod, "net1", other, "net1");
  ip(pod, "link set lo up\n");
  std::mt19937 random(20);
  const auto pick = [&](const auto& from) { return from[random() % std::size(from)]; };
  constexpr const char* networks[] = {
      "fd00:1::", "fd00:1:1::", "fd12::",    "2001:db8::", "2001:db8:1::", "2400:1::",         "2002:102::",
      "fec0:1::", "2001:1::",   "2001:10::", "3ffe:1::",   "fd00:1:0:1::", "2001:db8:0:8000::"};
  constexpr const char* devices[] = {"eth0", "eth0", "net1", "lo"};
  constexpr int lengths[] = {48, 64, 64, 96, 128};
  std::size_t compared = 0;
  for (int round = 0; round < 25; ++round) {
    std::string add;
    for (unsigned long i = 0, count = 1 + random() % 6; i < count; ++i) {
      add += fmt::format("address add {}{:x}/{} dev {} nodad{}\n", pick(networks), 16 + i, pick(lengths), pick(devices),
                         random() % 8 == 0 ? " preferred_lft 0" : "");
    }
    ip(pod, add + "route add ::/0 dev eth0 metric 5000\n");
    wait_for_addresses(pod);
    for (int i = 0; i < 8; ++i) {
      const Endpoint to(random() % 16 == 0 ? "fe80::99" : fmt::format("{}{:x}", pick(networks), 999 + random() % 9),
                        99);
      if (to.address.is_link_local()) continue;  // such a destination needs an interface
      const std::string kernels = pod.run([&] {
        const FileDescriptor socket(check(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket"));
        const sockaddr_storage address = to.socket_address();
        if (::connect(socket.get(), pointer(address), socket_address_size) != 0) return std::string("none");
        sockaddr_in6 own{};
        socklen_t size = sizeof own;
        check(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size), "getsockname");
        char text[INET6_ADDRSTRLEN];
        return std::string(inet_ntop(AF_INET6, &own.sin6_addr, text, sizeof text));
      });
      const auto said =
          nlohmann::json::parse(pod.program({program_under_test(), "explain", "out", "udp", to.text(), "--json"}).out);
      SCOPED_TRACE(fmt::format("round {}, to {}\n{}{}", round, to.text(), add, pod.must({"ip", "-6", "address"})));
      if (kernels == "none") {
        EXPECT_EQ(said["outcome"]["kind"], "unroutable");
        continue;
      }
      EXPECT_EQ(said["packet"]["source"]["address"], kernels);
      ++compared;
    }
    for (const char* device : {"eth0", "net1", "lo"}) {
      pod.must({"ip", "-6", "address", "flush", "dev", device, "scope", "global"});
      pod.must({"ip", "-6", "address", "flush", "dev", device, "scope", "site"});
    }
    ip(pod, "route del ::/0 dev eth0 metric 5000\n");
  }
  EXPECT_GT(compared, 100U);
}

class Ipv4Source : public KernelTest {};

// Of random addresses of all scopes on three interfaces, by routes with a gateway and without.
TEST_F(Ipv4Source, IsTheOneOfTheRoutesScope) {
  const Namespace pod;
  const Namespace other;
  join(pod, "eth0", other, "eth0");
  join(pod, "net1", other, "net1");
  ip(pod, "link set lo up\n");
  std::mt19937 random(21);
  const auto pick = [&](const auto& from) { return from[random() % std::size(from)]; };
  constexpr const char* networks[] = {"10.1.0.", "10.2.0.", "192.0.2.", "169.254.3."};
  constexpr const char* devices[] = {"eth0", "eth0", "net1", "lo"};
  constexpr const char* scopes[] = {"global", "global", "link", "host"};
  constexpr int lengths[] = {24, 24, 32};
  std::size_t compared = 0;
  for (int round = 0; round < 40; ++round) {
    std::string add;
    for (unsigned long i = 0, count = random() % 5; i < count; ++i) {
      const std::string device = pick(devices);
      // Of one network all have the same scope; what is on lo is local as a whole, so no gateway is there.
      const auto network = device == "lo" ? 2 : random() % std::size(networks);
      add += fmt::format("address add {}{}/{} dev {} scope {}\n", networks[network], 16 + i, pick(lengths), device,
                         scopes[(network + static_cast<unsigned long>(round)) % std::size(scopes)]);
    }
    const char* gateways[] = {"via 10.1.0.99 onlink", "via 10.2.0.99 onlink", ""};
    add += fmt::format("route add default {} dev eth0 metric 5000\n", pick(gateways));
    add += fmt::format("route add 10.9.0.0/16 {} dev net1\n", pick(gateways));
    ip(pod, add);
    for (const char* to : {"10.9.0.9", "10.1.0.77", "192.0.2.77", "203.0.113.9"}) {
      const std::string kernels = pod.run([&] {
        const FileDescriptor socket(check(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket"));
        const sockaddr_storage address = Endpoint(to, 99).socket_address();
        if (::connect(socket.get(), pointer(address), socket_address_size) != 0) return std::string("none");
        return local_end(socket.get()).address.text();
      });
      const auto said = nlohmann::json::parse(
          pod.program({program_under_test(), "explain", "out", "udp", Endpoint(to, 99).text(), "--json"}).out);
      SCOPED_TRACE(fmt::format("round {}, to {}\n{}{}", round, to, add, pod.must({"ip", "-4", "address"})));
      if (kernels == "none") {
        EXPECT_EQ(said["outcome"]["kind"], "unroutable");
        continue;
      }
      EXPECT_EQ(said["packet"]["source"]["address"], kernels);
      ++compared;
    }
    for (const char* device : {"eth0", "net1"}) pod.must({"ip", "-4", "address", "flush", "dev", device});
    pod.must({"ip", "-4", "address", "flush", "dev", "lo", "to", "0.0.0.0/1"});
    pod.must({"ip", "-4", "address", "flush", "dev", "lo", "to", "128.0.0.0/1"});
    pod.must({"ip", "-4", "address", "add", "127.0.0.1/8", "dev", "lo"});
    pod.must({"ip", "-4", "route", "flush", "table", "main"});
  }
  EXPECT_GT(compared, 100U);
}

// Unnumbered: the address is on lo, or on another interface.
TEST_P(Source, IsOneOfAnotherInterfaceIfItsOwnHasNone) {
  if (family() == Family::ipv6) return;
  const Namespace& inside = pod_->ns();
  for (const char* device : {"lo", "net1"}) {
    for (const char* flushed : {"lo", "net1", "eth0"})
      inside.must({"ip", "-4", "address", "flush", "dev", flushed, "scope", "global"});
    ip(inside, fmt::format("address add 10.1.0.2/32 dev {}\nroute replace 10.1.0.1 dev eth0\n"
                           "route replace default via 10.1.0.1\n",
                           device));
    apply(injected);
    EXPECT_EQ(connect(as_app, service(80)), landed(Role::proxy_outbound, original(service(80))));
    const std::string said =
        inside.must({program_under_test(), "explain", "out", "tcp", service(80).text(), "--uid", "1000", "--brief"});
    EXPECT_THAT(said, ::testing::Not(HasSubstr("replies"))) << said;
    EXPECT_EQ(inside.must({program_under_test(), "explain", "out", "tcp", service(80).text(), "--uid", "1000", "--from",
                           "0.0.0.0", "--brief"}),
              said);
    const Output proved = inside.program({program_under_test(), "apply", "--prove", "--backend",
                                          std::get<0>(GetParam()), "--ip-families", "ipv4,ipv6", "-i", "*", "-b", "*"});
    EXPECT_EQ(proved.exit_code, 0) << proved.err;
    inside.must({program_under_test(), "clean"});
  }
}

// MASQUERADE takes no address that is for the link or the host alone.
TEST_P(Source, OfMasqueradeIsForAll) {
  if (family() == Family::ipv6) return;
  const Namespace& inside = pod_->ns();
  inside.must({"ip", "address", "flush", "dev", "eth0"});
  ip(inside,
     "address add 169.254.3.3/16 dev eth0 scope link\naddress add 10.66.0.1/32 dev eth0 scope host\n"
     "address add 10.1.0.2/24 dev eth0\nroute add default via 10.1.0.1\n");
  const bool legacy = std::string_view(std::get<0>(GetParam())) == "iptables-legacy";
  inside.must({legacy ? "iptables-legacy" : "iptables-nft", "-t", "nat", "-A", "POSTROUTING", "-o", "eth0", "-j",
               "MASQUERADE"});
  pod_->at(Place::outside)
      .must({"nft", "-f", "-"},
            "table ip seen {\n  counter of_own { }\n  chain in {\n"
            "    type filter hook input priority 0\n"
            "    ip saddr 10.1.0.2 tcp dport 80 counter name of_own\n  }\n}\n");
  EXPECT_EQ(connect(as_app, service(80)).role, Role::outside);
  EXPECT_EQ(pod_->at(Place::outside).must({"nft", "list", "counter", "ip", "seen", "of_own"}).find("packets 0 "),
            std::string::npos);
  EXPECT_THAT(explained("tcp", service(80)), HasSubstr("from 10.1.0.2"));
}

// Of several next hops each connection gets one: which, explain does not know, and says so.
TEST_P(Source, OfSeveralNextHopsIsDoubted) {
  const bool ipv4 = family() == Family::ipv4;
  const auto replace = [&](const std::string& hops) {
    std::vector<std::string> words{"ip", ipv4 ? "-4" : "-6", "route", "replace", "default"};
    for (const std::string_view word : split_words(hops)) words.emplace_back(word);
    pod_->ns().must(words);
  };
  const std::string both = fmt::format("nexthop via {} dev eth0 nexthop via ", at().client);
  replace(both + (ipv4 ? "10.1.0.9" : "fd00:1::9") + " dev eth0");
  EXPECT_EQ(explained("tcp", service(80)).find("not certain"), std::string::npos);
  replace(both + std::string(at().guest) + " dev net1");
  EXPECT_THAT(explained("tcp", service(80)), HasSubstr("has next hops by other interfaces, too"));
  // Each of them counts where it makes a difference.
  const auto verified = [&] {
    return pod_->ns().program({program_under_test(), "verify", "--ip-families", "ipv4,ipv6", "-i", "*", "-b", "*"});
  };
  apply("-i * -b *");
  EXPECT_EQ(verified().exit_code, 0) << verified().err;
  pod_->ns().must({"nft",
                   "add table inet others; add chain inet others out { type filter hook output priority -300; };"
                   "add rule inet others out oifname net1 udp dport 9 drop"});
  EXPECT_EQ(verified().exit_code, 0) << verified().err;
  pod_->ns().must({"nft", "add rule inet others out oifname net1 tcp dport 80 drop"});
  EXPECT_THAT(explained("tcp", service(80)), HasSubstr("unknown: which next hop it gets by `ip"));
  EXPECT_EQ(verified().exit_code, 6);
  EXPECT_THAT(verified().err, AnyOf(HasSubstr("if that by net1: dropped"), HasSubstr("of inet others out: ")));
}

// The first address of a network is one as any other, but on Linux before 5.14; the last one is for all of it.
TEST_P(Source, TheFirstAddressOfANetworkIsAsTheKernelHasIt) {
  if (family() == Family::ipv6) return;
  apply(injected);
  const Endpoint first("10.1.0.0", 80);
  const auto said = [&](const char* to) {
    return pod_->ns().program({program_under_test(), "explain", "out", "tcp", to, "--uid", "1000", "--brief"}).out;
  };
  const bool old =
      pod_->ns().must({"ip", "route", "show", "table", "local"}).find("broadcast 10.1.0.0 ") != std::string::npos;
  if (old) {
    EXPECT_THAT(said("10.1.0.0:80"), HasSubstr("a broadcast address"));
  } else {
    EXPECT_EQ(connect(as_app, first), landed(Role::proxy_outbound, original(first)));
    EXPECT_THAT(said("10.1.0.0:80"), HasSubstr("lands on 127.0.0.1:15001"));
  }
  EXPECT_THAT(said("10.1.0.255:80"), HasSubstr("a broadcast address"));
}

// A chain of type nat runs for connections that are tracked alone, and nothing is while no rule needs it.
TEST_F(Ipv6Source, WithoutConnectionTrackingNoChainOfTypeNatRuns) {
  const Namespace pod;
  const Namespace other;
  join(pod, "eth0", other, "eth0");
  ip(pod, "link set lo up\naddress add 10.9.0.2/24 dev eth0\n");
  ip(other, "address add 10.9.0.1/24 dev eth0\n");
  pod.must({"nft", "-f", "-"},
           "table ip t {\n  chain out {\n    type nat hook output priority -100; policy drop;\n  }\n}\n");
  const auto send = [&] {
    return pod.run([&] {
      const FileDescriptor socket(check(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket"));
      const sockaddr_storage address = Endpoint("10.9.0.1", 99).socket_address();
      return ::sendto(socket.get(), "x", 1, 0, pointer(address), socket_address_size) == 1 ? 0 : errno;
    });
  };
  const auto explained = [&] {
    return pod.program({program_under_test(), "explain", "out", "udp", "10.9.0.1:99"}).out;
  };
  EXPECT_EQ(send(), 0);
  EXPECT_THAT(explained(), ::testing::AllOf(HasSubstr("leaves the pod by eth0"), HasSubstr("conntrack: off")));
  pod.must({"nft", "add", "table", "ip", "u"});
  pod.must({"nft", "add", "chain", "ip", "u", "c"});
  pod.must({"nft", "add", "rule", "ip", "u", "c", "ct", "state", "new"});  // in a chain that nothing calls
  EXPECT_EQ(send(), EPERM);
  EXPECT_THAT(explained(), HasSubstr("dropped"));
}

}  // namespace
}  // namespace sidetrack::netns
