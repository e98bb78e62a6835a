// SPDX-License-Identifier: GPL-2.0-or-later
// --capture-udp: datagrams arrive unchanged at the proxy's transparent listener, which sees where the client sent them
// and answers from there. That the answer comes from where the question went is part of every landing.
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

class CaptureUdp : public Traffic {
 protected:
  CaptureUdp() : Traffic(Pod::Options{.transparent_proxy = true}) {}
};
INSTANTIATE_TEST_SUITE_P(, CaptureUdp, settings(), setting_name);

TEST_P(CaptureUdp, IsOffByDefault) {
  apply("-m TPROXY -i * -b *");
  EXPECT_EQ(send(from_outside, pod(5000)), landed(Role::app, local(pod(5000))));
}

TEST_P(CaptureUdp, ArrivesUnchangedAtTheProxy) {
  EXPECT_EQ(send(from_outside, pod(5000)), landed(Role::app, local(pod(5000))));
  EXPECT_EQ(send(from_outside, pod(443)), landed(Role::refused));
  apply("-m TPROXY -i * -b * --capture-udp 443,4999-5001");
  EXPECT_EQ(send(from_outside, pod(5000)), landed(Role::proxy_inbound, local(pod(5000))));
  EXPECT_EQ(send(from_outside, pod(443)), landed(Role::proxy_inbound, local(pod(443))));
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::proxy_inbound, local(pod(8080))));
}

TEST_P(CaptureUdp, OfOtherPortsReachesTheApp) {
  apply("-m TPROXY -i * -b * --capture-udp 443");
  EXPECT_EQ(send(from_outside, pod(5000)), landed(Role::app, local(pod(5000))));
}

TEST_P(CaptureUdp, NeedsNoInboundTcp) {
  apply("-m TPROXY --capture-udp 5000");
  EXPECT_EQ(send(from_outside, pod(5000)), landed(Role::proxy_inbound, local(pod(5000))));
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::app, local(pod(8080))));
}

// To an address that is not the pod's own, only the mark and the policy route lead to the proxy.
TEST_P(CaptureUdp, OfPassingTrafficArrivesAtTheProxy) {
  EXPECT_EQ(send(from_guest, service(443)), landed(Role::outside, local(service(443))));
  apply("-m TPROXY --capture-udp 443");
  EXPECT_EQ(send(from_guest, service(443)), landed(Role::proxy_inbound, local(service(443))));
}

TEST_P(CaptureUdp, GoesToTheInboundPortWithTheMarkThatIsAskedFor) {
  Actor transparent = as_proxy;
  transparent.identity.keep_capabilities = true;
  pod_->listen(transparent, Role::tunnel, {.tcp = {}, .udp = {16006}, .transparent = true});
  apply("-m TPROXY -z 16006 -t 1400 -r 140 --capture-udp 5000");
  EXPECT_EQ(send(from_outside, pod(5000)), landed(Role::tunnel, local(pod(5000))));
}

// A conversation: every datagram goes there, also those of which connection tracking has seen an answer.
TEST_P(CaptureUdp, Stays) {
  apply("-m TPROXY -b * --capture-udp 5000");
  Connection client(pod_->at(Place::outside), {}, {.to = pod(5000), .protocol = Protocol::udp, .from = {}});
  for (int round = 0; round < 10; ++round) EXPECT_EQ(client.ask(), landed(Role::proxy_inbound, local(pod(5000))));
}

TEST_P(CaptureUdp, OfWhatTheProxyPassesOnReachesTheApp) {
  apply("-m TPROXY -i * -b * --capture-udp 5000");
  for (const Actor& actor : {as_proxy, as_proxy_user, as_proxy_group, as_app}) {
    EXPECT_EQ(send(actor, pod(5000)), landed(Role::app, local(pod(5000))));
    EXPECT_EQ(send(actor, loopback(5000)), landed(Role::app, local(loopback(5000))));
  }
}

TEST_P(CaptureUdp, LeavesOutboundAsItIs) {
  apply("-m TPROXY -i * -b * --capture-udp 443");
  EXPECT_EQ(send(as_app, service(443)), landed(Role::outside, local(service(443))));
  EXPECT_EQ(send(as_proxy, service(443)), landed(Role::outside, local(service(443))));
}

// Answers are for any port that somebody asked from.
TEST_P(CaptureUdp, LeavesAnswersAlone) {
  apply("-m TPROXY -i * -b * --capture-udp 1-65535");
  for (const Actor& actor : {as_proxy, as_proxy_user, as_proxy_group, as_app})
    EXPECT_EQ(send(actor, service(443)), landed(Role::outside, local(service(443))));
  EXPECT_EQ(send(from_outside, pod(5000)), landed(Role::proxy_inbound, local(pod(5000))));
}

TEST_P(CaptureUdp, OfAnExcludedInterfaceReachesTheApp) {
  const Endpoint second(at().pod_second, 5000);
  apply("-m TPROXY -b * --capture-udp 5000 -c net1");
  EXPECT_EQ(send(from_guest, second), landed(Role::app, local(second)));
  EXPECT_EQ(send(from_outside, pod(5000)), landed(Role::proxy_inbound, local(pod(5000))));
}

TEST_P(CaptureUdp, EndsWithItsRules) {
  apply("-m TPROXY -b * --capture-udp 5000");
  apply("-m TPROXY -b *");
  EXPECT_EQ(send(from_outside, pod(5000)), landed(Role::app, local(pod(5000))));
}

}  // namespace
}  // namespace sidetrack::netns
