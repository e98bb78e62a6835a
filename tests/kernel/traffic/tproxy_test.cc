// SPDX-License-Identifier: GPL-2.0-or-later
// Mode TPROXY: inbound connections arrive at the proxy unchanged. The local address of the accepted socket is the
// destination that the client chose; that its remote address is the client's own is part of every landing.
#include <gmock/gmock.h>

#include "model/scan.h"
#include "support/network.h"
#include "support/traffic.h"
#include "support/words.h"

namespace sidetrack::netns {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Tproxy : public Traffic {
 protected:
  Tproxy() : Traffic(Pod::Options{.transparent_proxy = true}) {}
};
INSTANTIATE_TEST_SUITE_P(, Tproxy, settings(), setting_name);

constexpr std::string_view by_tproxy = "-p 15001 -z 15006 -u 1337 -m TPROXY -i * -x -b * -d 15090,15021,15020";

TEST_P(Tproxy, InboundArrivesUnchangedAtTheProxy) {
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::app, local(pod(8080))));
  apply(by_tproxy);
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::proxy_inbound, local(pod(8080))));
  EXPECT_EQ(connect(from_outside, pod(9)), landed(Role::proxy_inbound, local(pod(9))));
}

// To an address that is not the pod's own, only the mark and the policy route lead to the proxy: of the first packet
// and of every later one.
TEST_P(Tproxy, PassingTrafficArrivesUnchangedAtTheProxy) {
  EXPECT_EQ(connect(from_guest, service(80)), landed(Role::outside, local(service(80))));
  apply(by_tproxy);
  EXPECT_EQ(connect(from_guest, service(80)), landed(Role::proxy_inbound, local(service(80))));
}

TEST_P(Tproxy, InboundToExcludedPortsReachesTheApp) {
  apply(by_tproxy);
  for (const auto port : status_ports) EXPECT_EQ(connect(from_outside, pod(port)), landed(Role::app, local(pod(port))));
}

TEST_P(Tproxy, InboundOfAPortListOnlyTheseArriveAtTheProxy) {
  apply("-m TPROXY -b 80,8080");
  EXPECT_EQ(connect(from_outside, pod(80)), landed(Role::proxy_inbound, local(pod(80))));
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::proxy_inbound, local(pod(8080))));
  EXPECT_EQ(connect(from_outside, pod(8081)), landed(Role::app, local(pod(8081))));
}

TEST_P(Tproxy, PortRangesAreCapturedOrLeftOut) {
  apply("-m TPROXY -b 80,8000-8080");
  for (const std::uint16_t port : std::vector<std::uint16_t>{80, 8000, 8080})
    EXPECT_EQ(connect(from_outside, pod(port)), landed(Role::proxy_inbound, local(pod(port))));
  EXPECT_EQ(connect(from_outside, pod(8081)), landed(Role::app, local(pod(8081))));
  apply("-m TPROXY -b * -d 8081-15020");
  for (const std::uint16_t port : std::vector<std::uint16_t>{8081, 15020})
    EXPECT_EQ(connect(from_outside, pod(port)), landed(Role::app, local(pod(port))));
  for (const std::uint16_t port : std::vector<std::uint16_t>{8080, 15021})
    EXPECT_EQ(connect(from_outside, pod(port)), landed(Role::proxy_inbound, local(pod(port))));
}

class TproxyOfMarks : public Tproxy {
 protected:
  void SetUp() override {
    Tproxy::SetUp();
    if (pod_) apply(by_tproxy);
  }
  [[nodiscard]] std::string explained() const {
    return pod_->ns().must({program_under_test(), "explain", "in", "tcp", pod(8080).text(), "--from",
                            std::string(at().client), "--brief"});
  }
  [[nodiscard]] Output verified() const {
    Words words{program_under_test(), "verify", "--ip-families", "ipv4,ipv6", "--backend", std::get<0>(GetParam())};
    for (const std::string_view word : split_words(by_tproxy)) words.emplace_back(word);
    return pod_->ns().program(words);
  }
};
INSTANTIATE_TEST_SUITE_P(, TproxyOfMarks, settings(), setting_name);

// With net.ipv4.conf.*.src_valid_mark, as wg-quick sets it, what comes in and is marked has a local source to the
// kernel.
TEST_P(TproxyOfMarks, SourcesThatAreLookedUpByMarkAreAnObstacle) {
  const Landing lands = landed(Role::proxy_inbound, local(pod(8080)));
  for (const std::string which : {"all", "eth0"}) {
    const std::string setting = "ipv4/conf/" + which + "/src_valid_mark";
    set_sysctl(pod_->ns(), setting, "1");
    const bool lost = family() == Family::ipv4;
    EXPECT_EQ(connect(from_outside, pod(8080)), lost ? landed(Role::no_answer) : lands);
    const std::string said = explained();
    EXPECT_EQ(said.find("src_valid_mark of eth0 is 1") != std::string::npos, lost) << said;
    EXPECT_EQ(verified().exit_code, 6);
    EXPECT_THAT(verified().err, HasSubstr("src_valid_mark"));
    set_sysctl(pod_->ns(), setting, "0");
    EXPECT_EQ(connect(from_outside, pod(8080)), lands);
    EXPECT_EQ(verified().exit_code, 0);
  }
}

// With net.ipv4.tcp_fwmark_accept the socket that is accepted has the mark of the first packet, by which its answers
// stay in the pod.
TEST_P(TproxyOfMarks, AcceptedConnectionsThatHaveTheMarkAreAnObstacle) {
  const Landing lands = landed(Role::proxy_inbound, local(pod(8080)));
  EXPECT_EQ(connect(from_outside, pod(8080)), lands);
  EXPECT_THAT(explained(), Not(HasSubstr("lost")));
  set_sysctl(pod_->ns(), "ipv4/tcp_fwmark_accept", "1");
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::no_answer));
  EXPECT_THAT(explained(),
              HasSubstr("replies are lost: tcp_fwmark_accept is 1, so they have the mark 0x539: they stay in the pod"));
  const Output refused = verified();
  EXPECT_EQ(refused.exit_code, 6);
  EXPECT_THAT(refused.err, HasSubstr("tcp_fwmark_accept is 1, so they have the mark 0x539: they stay in the pod"));
  EXPECT_EQ(connect(from_outside, pod(15020)), landed(Role::app, local(pod(15020)))) << "left out, so it has no mark";
}

// A conversation, not only its beginning: later packets take the way of established connections (ISTIO_DIVERT).
TEST_P(Tproxy, ConnectionsStay) {
  apply(by_tproxy);
  netns::Connection first(pod_->at(Place::outside), {}, {.to = pod(8080), .protocol = Protocol::tcp, .from = {}});
  netns::Connection second(pod_->at(Place::outside), {}, {.to = pod(8081), .protocol = Protocol::tcp, .from = {}});
  for (int round = 0; round < 10; ++round) {
    EXPECT_EQ(first.ask(), landed(Role::proxy_inbound, local(pod(8080))));
    EXPECT_EQ(second.ask(), landed(Role::proxy_inbound, local(pod(8081))));
  }
}

TEST_P(Tproxy, MarkAndRouteTableMayBeOthers) {
  apply("-m TPROXY -b * -t 1400 -r 140");
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::proxy_inbound, local(pod(8080))));
}

TEST_P(Tproxy, OutboundIsStillRedirected) {
  apply(by_tproxy);
  EXPECT_EQ(connect(as_app, service(80)), landed(Role::proxy_outbound, original(service(80))));
  EXPECT_EQ(connect(as_proxy, service(80)), landed(Role::outside, local(service(80))));
}

TEST_P(Tproxy, AppReachesItself) {
  apply(by_tproxy);
  EXPECT_EQ(connect(as_app, loopback(8080)), landed(Role::app, local(loopback(8080))));
  EXPECT_EQ(connect(as_app, pod(8080)), landed(Role::app, local(pod(8080))));
}

TEST_P(Tproxy, ProxyByThePodsAddressLandsOnItsInboundPort) {
  apply(by_tproxy);
  EXPECT_EQ(connect(as_proxy, pod(8080)), landed(Role::proxy_inbound, original(pod(8080))));
}

// Mode TPROXY has no rule of its own for the tunnel.
TEST_P(Tproxy, TunnelArrivesAtTheInboundPort) {
  apply(by_tproxy);
  EXPECT_EQ(connect(from_outside, pod(15008)), landed(Role::proxy_inbound, local(pod(15008))));
  EXPECT_EQ(connect(as_proxy, pod(15008)), landed(Role::proxy_inbound, local(pod(15008))));
}

TEST_P(Tproxy, ProxyFromItsInboundAddressReachesTheApp) {
  apply(by_tproxy);
  EXPECT_EQ(connect_from_inbound_source(pod(8080)), landed(Role::app, local(pod(8080))));
}

// The proxy speaks to the app from the client's own address, marked. The app's answers go to that address: only the
// policy route brings them to the proxy instead of sending them out of the pod. (With 127.0.0.1 as their source, IPv4
// wants route_localnet for that; Envoy's manual says so of its original_src filter.)
TEST_P(Tproxy, ProxyReachesTheAppFromTheClientsAddress) {
  constexpr Actor as_tproxy{Place::pod, {1337, 1337, true}};
  const Request request{.to = loopback(8080),
                        .protocol = Protocol::tcp,
                        .from = Endpoint(at().client, 41000),
                        .transparent = true,
                        .mark = 1337};
  set_sysctl(pod_->ns(), "ipv4/conf/eth0/route_localnet", "1");
  apply(by_tproxy);
  EXPECT_EQ(pod_->connect(as_tproxy, request), landed(Role::app, local(loopback(8080))));
}

TEST_P(Tproxy, ExcludedInterfacesAreNotCaptured) {
  const Endpoint guest(at().guest, 80);
  const Endpoint second(at().pod_second, 8080);
  for (const char* excluded : {"net1", "net+"}) {
    apply(std::string("-m TPROXY -b * -i * -c ") + excluded);
    EXPECT_EQ(connect(from_guest, second), landed(Role::app, local(second))) << excluded;
    EXPECT_EQ(connect(as_app, guest), landed(Role::guest, local(guest))) << excluded;
    EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::proxy_inbound, local(pod(8080)))) << excluded;
  }
}

}  // namespace
}  // namespace sidetrack::netns
