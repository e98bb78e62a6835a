// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

class Inbound : public Traffic {};
INSTANTIATE_TEST_SUITE_P(, Inbound, settings(), setting_name);

TEST_P(Inbound, ToTheAppLandsOnTheProxy) {
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::app, local(pod(8080))));
  apply(injected);
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::proxy_inbound, original(pod(8080))));
}

TEST_P(Inbound, ToAPortWithoutAListenerLandsOnTheProxy) {
  EXPECT_EQ(connect(from_outside, pod(9)), landed(Role::refused));
  apply(injected);
  EXPECT_EQ(connect(from_outside, pod(9)), landed(Role::proxy_inbound, original(pod(9))));
}

TEST_P(Inbound, ToExcludedPortsReachesTheApp) {
  apply(injected);
  for (const auto port : status_ports) EXPECT_EQ(connect(from_outside, pod(port)), landed(Role::app, local(pod(port))));
}

TEST_P(Inbound, LandsOnTheProxyWithoutExclusions) {
  apply("-b *");
  for (const auto port : status_ports)
    EXPECT_EQ(connect(from_outside, pod(port)), landed(Role::proxy_inbound, original(pod(port))));
}

TEST_P(Inbound, OfAPortListOnlyTheseLandOnTheProxy) {
  EXPECT_EQ(connect(from_outside, pod(80)), landed(Role::app, local(pod(80))));
  apply("-b 80,8080");
  EXPECT_EQ(connect(from_outside, pod(80)), landed(Role::proxy_inbound, original(pod(80))));
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::proxy_inbound, original(pod(8080))));
  EXPECT_EQ(connect(from_outside, pod(8081)), landed(Role::app, local(pod(8081))));
}

TEST_P(Inbound, OfAPortRangeOnlyItsPortsLandOnTheProxy) {
  apply("-b 80,8000-8080");
  for (const std::uint16_t port : std::vector<std::uint16_t>{80, 8000, 8080})
    EXPECT_EQ(connect(from_outside, pod(port)), landed(Role::proxy_inbound, original(pod(port))));
  EXPECT_EQ(connect(from_outside, pod(8081)), landed(Role::app, local(pod(8081))));
}

TEST_P(Inbound, ToAnExcludedPortRangeReachesTheApp) {
  apply("-b * -d 8081-15020,15090");
  for (const std::uint16_t port : std::vector<std::uint16_t>{8081, 15020, 15090})
    EXPECT_EQ(connect(from_outside, pod(port)), landed(Role::app, local(pod(port))));
  for (const std::uint16_t port : std::vector<std::uint16_t>{80, 8080, 15021})
    EXPECT_EQ(connect(from_outside, pod(port)), landed(Role::proxy_inbound, original(pod(port))));
}

TEST_P(Inbound, WithoutPortsReachesTheApp) {
  apply("-i *");
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::app, local(pod(8080))));
}

TEST_P(Inbound, TunnelReachesItsOwnPort) {
  apply(injected);
  EXPECT_EQ(connect(from_outside, pod(15008)), landed(Role::tunnel, local(pod(15008))));
}

TEST_P(Inbound, TunnelMayHaveAnotherPort) {
  apply("-b * -e 8081");
  EXPECT_EQ(connect(from_outside, pod(8081)), landed(Role::app, local(pod(8081))));
  EXPECT_EQ(connect(from_outside, pod(15008)), landed(Role::proxy_inbound, original(pod(15008))));
}

TEST_P(Inbound, DatagramsReachTheApp) {
  apply(injected);
  EXPECT_EQ(send(from_outside, pod(5000)), landed(Role::app, local(pod(5000))));
}

TEST_P(Inbound, ProxyMayHaveOtherPorts) {
  pod_->listen(as_proxy, Role::proxy_inbound, {.tcp = {16006}, .udp = {}});
  pod_->listen(as_proxy, Role::proxy_outbound, {.tcp = {16001}, .udp = {}});
  apply("-p 16001 -z 16006 -b * -i *");
  // Who listens on the default ports is now an app like any other.
  EXPECT_EQ(connect(from_outside, pod(15006)), landed(Role::proxy_inbound, original(pod(15006))));
  EXPECT_EQ(connect(as_app, service(15001)), landed(Role::proxy_outbound, original(service(15001))));
}

TEST_P(Inbound, ModeNoneCapturesNothing) {
  apply("-m NONE -b * -i *");
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::app, local(pod(8080))));
  EXPECT_EQ(connect(as_app, service(80)), landed(Role::outside, local(service(80))));
}

}  // namespace
}  // namespace sidetrack::netns
