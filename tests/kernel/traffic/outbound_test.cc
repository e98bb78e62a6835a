// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

class Outbound : public Traffic {};
INSTANTIATE_TEST_SUITE_P(, Outbound, settings(), setting_name);

constexpr Actor as_group(gid_t gid) { return {Place::pod, {1000, gid}}; }

TEST_P(Outbound, ToAnotherHostLandsOnTheProxy) {
  EXPECT_EQ(connect(as_app, service(80)), landed(Role::outside, local(service(80))));
  apply(injected);
  EXPECT_EQ(connect(as_app, service(80)), landed(Role::proxy_outbound, original(service(80))));
  EXPECT_EQ(connect(as_app, excluded(443)), landed(Role::proxy_outbound, original(excluded(443))));
}

TEST_P(Outbound, OfTheProxyItselfLeaves) {
  apply(injected);
  for (const Actor& actor : {as_proxy, as_proxy_user, as_proxy_group})
    EXPECT_EQ(connect(actor, service(80)), landed(Role::outside, local(service(80))));
}

TEST_P(Outbound, OfASecondProxyUidLeaves) {
  constexpr Actor as_second{Place::pod, {1338, 1000}};
  apply("-u 1337,1338 -i *");
  EXPECT_EQ(connect(as_second, service(80)), landed(Role::outside, local(service(80))));
  EXPECT_EQ(connect(as_app, service(80)), landed(Role::proxy_outbound, original(service(80))));
}

TEST_P(Outbound, UidAndGidMayDiffer) {
  apply("-u 1337 -g 1500 -i *");
  EXPECT_EQ(connect(as_group(1500), service(80)), landed(Role::outside, local(service(80))));
  EXPECT_EQ(connect(as_proxy_group, service(80)), landed(Role::proxy_outbound, original(service(80))));
}

TEST_P(Outbound, ToAnExcludedRangeLeaves) {
  apply("-i * -x " + both(&Addresses::excluded_range));
  EXPECT_EQ(connect(as_app, excluded(80)), landed(Role::outside, local(excluded(80))));
  EXPECT_EQ(connect(as_app, service(80)), landed(Role::proxy_outbound, original(service(80))));
}

TEST_P(Outbound, ToAnExcludedPortLeaves) {
  apply("-i * -o 443,9443");
  EXPECT_EQ(connect(as_app, service(443)), landed(Role::outside, local(service(443))));
  EXPECT_EQ(connect(as_app, service(9443)), landed(Role::outside, local(service(9443))));
  EXPECT_EQ(connect(as_app, service(80)), landed(Role::proxy_outbound, original(service(80))));
}

TEST_P(Outbound, ToAnExcludedPortRangeLeaves) {
  apply("-i * -o 81-443");
  EXPECT_EQ(connect(as_app, service(443)), landed(Role::outside, local(service(443))));
  EXPECT_EQ(connect(as_app, service(80)), landed(Role::proxy_outbound, original(service(80))));
  EXPECT_EQ(connect(as_app, service(9443)), landed(Role::proxy_outbound, original(service(9443))));
  EXPECT_EQ(send(as_app, service(443)), landed(Role::outside, local(service(443))));
}

TEST_P(Outbound, OfAnIncludedPortRangeOnlyItLandsOnTheProxy) {
  apply("-q 443-9442");
  EXPECT_EQ(connect(as_app, service(443)), landed(Role::proxy_outbound, original(service(443))));
  EXPECT_EQ(connect(as_app, service(80)), landed(Role::outside, local(service(80))));
  EXPECT_EQ(connect(as_app, service(9443)), landed(Role::outside, local(service(9443))));
}

TEST_P(Outbound, OfAnIncludedRangeOnlyItLandsOnTheProxy) {
  apply("-i " + both(&Addresses::service_range));
  EXPECT_EQ(connect(as_app, service(80)), landed(Role::proxy_outbound, original(service(80))));
  EXPECT_EQ(connect(as_app, other_service(80)), landed(Role::outside, local(other_service(80))));
}

TEST_P(Outbound, OfAnIncludedPortOnlyItLandsOnTheProxy) {
  apply("-q 9443");
  EXPECT_EQ(connect(as_app, service(9443)), landed(Role::proxy_outbound, original(service(9443))));
  EXPECT_EQ(connect(as_app, service(443)), landed(Role::outside, local(service(443))));
}

TEST_P(Outbound, AnExcludedRangeWinsOverAnIncludedPort) {
  apply("-q 9443 -x " + both(&Addresses::excluded_range));
  EXPECT_EQ(connect(as_app, excluded(9443)), landed(Role::outside, local(excluded(9443))));
  EXPECT_EQ(connect(as_app, service(9443)), landed(Role::proxy_outbound, original(service(9443))));
}

TEST_P(Outbound, WithoutRangesLeaves) {
  apply("-b *");
  EXPECT_EQ(connect(as_app, service(80)), landed(Role::outside, local(service(80))));
}

TEST_P(Outbound, OfExcludedOwnerGroupsLeaves) {
  apply("-i *", {"ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE=3000,3001"});
  EXPECT_EQ(connect(as_group(3000), service(80)), landed(Role::outside, local(service(80))));
  EXPECT_EQ(connect(as_group(3001), service(80)), landed(Role::outside, local(service(80))));
  EXPECT_EQ(connect(as_app, service(80)), landed(Role::proxy_outbound, original(service(80))));
}

TEST_P(Outbound, OfIncludedOwnerGroupsOnlyTheseLandOnTheProxy) {
  apply("-i *", {"ISTIO_OUTBOUND_OWNER_GROUPS=3000,3001"});
  EXPECT_EQ(connect(as_group(3000), service(80)), landed(Role::proxy_outbound, original(service(80))));
  EXPECT_EQ(connect(as_group(3001), service(80)), landed(Role::proxy_outbound, original(service(80))));
  EXPECT_EQ(connect(as_app, service(80)), landed(Role::outside, local(service(80))));
}

TEST_P(Outbound, DatagramsLeave) {
  apply(injected);
  EXPECT_EQ(send(as_app, service(443)), landed(Role::outside, local(service(443))));
}

// ---- From the pod to itself, all of it over lo.

class Itself : public Traffic {};
INSTANTIATE_TEST_SUITE_P(, Itself, settings(), setting_name);

TEST_P(Itself, AppReachesItself) {
  apply(injected);
  EXPECT_EQ(connect(as_app, loopback(8080)), landed(Role::app, local(loopback(8080))));
  EXPECT_EQ(connect(as_app, pod(8080)), landed(Role::app, local(pod(8080))));
}

TEST_P(Itself, ProxyReachesTheAppByLoopback) {
  apply(injected);
  EXPECT_EQ(connect(as_proxy, loopback(8080)), landed(Role::app, local(loopback(8080))));
}

// A service that is the pod itself: what the proxy sends there must come in through the proxy.
TEST_P(Itself, ProxyByThePodsAddressLandsOnItsInboundPort) {
  EXPECT_EQ(connect(as_proxy, pod(8080)), landed(Role::app, local(pod(8080))));
  apply(injected);
  EXPECT_EQ(connect(as_proxy, pod(8080)), landed(Role::proxy_inbound, original(pod(8080))));
  EXPECT_EQ(connect(as_proxy, pod(15008)), landed(Role::tunnel, local(pod(15008))));
}

// The uid's rule "not the proxy's uid, over lo: return" comes first: the gid alone gets no further.
TEST_P(Itself, ProxysGidAloneCountsAsTheApp) {
  apply(injected);
  EXPECT_EQ(connect(as_proxy_group, pod(8080)), landed(Role::app, local(pod(8080))));
}

// DNS capture lifts that for port 53, and leaves port 53 out for the uid, but not for the gid.
TEST_P(Itself, DnsCaptureTellsTheProxysUidAndGidApart) {
  pod_->listen(as_app, Role::app, {.tcp = {53}, .udp = {}});
  apply("-b * -i * --redirect-dns --dns-server " + both(&Addresses::dns));
  EXPECT_EQ(connect(as_proxy_user, pod(53)), landed(Role::app, local(pod(53))));
  EXPECT_EQ(connect(as_proxy_group, pod(53)), landed(Role::proxy_inbound, original(pod(53))));
}

TEST_P(Itself, ProxyFromItsInboundAddressReachesTheApp) {
  apply(injected);
  EXPECT_EQ(connect_from_inbound_source(pod(8080)), landed(Role::app, local(pod(8080))));
}

TEST_P(Itself, IncludedLoopbackSendsTheAppToTheProxy) {
  apply("-i 127.0.0.0/8,10.1.0.0/24,::1/128,fd00:1::/64");
  EXPECT_EQ(connect(as_app, pod(8080)), landed(Role::proxy_outbound, original(pod(8080))));
  EXPECT_EQ(connect(as_proxy_group, pod(8080)), landed(Role::proxy_inbound, original(pod(8080))));
  EXPECT_EQ(connect(as_app, loopback(8080)), landed(Role::app, local(loopback(8080))));
}

// IPv6 has one loopback address; IPv4 a whole prefix of them.
class LoopbackPrefix : public Traffic {};
INSTANTIATE_TEST_SUITE_P(, LoopbackPrefix, settings(Family::ipv4), setting_name);

TEST_P(LoopbackPrefix, IsOneAddressByDefault) {
  apply(injected);
  EXPECT_EQ(connect(as_proxy, "127.0.0.2:8080"), landed(Role::proxy_inbound, original("127.0.0.2:8080")));
}

TEST_P(LoopbackPrefix, MayBeWider) {
  apply(injected, {"ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR=127.0.0.0/8"});
  EXPECT_EQ(connect(as_proxy, "127.0.0.2:8080"), landed(Role::app, local("127.0.0.2:8080")));
}

}  // namespace
}  // namespace sidetrack::netns
