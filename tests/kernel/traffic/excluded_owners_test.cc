// SPDX-License-Identifier: GPL-2.0-or-later
// --exclude-uids, --exclude-gids, --exclude-uid-ports: what these users send goes past the proxy.
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

constexpr Actor as(uid_t uid, gid_t gid = 1000) { return {Place::pod, {uid, gid}}; }

class ExcludedOwners : public Traffic {
 protected:
  [[nodiscard]] Endpoint server() const { return {at().dns, 53}; }
  [[nodiscard]] Endpoint other_server() const { return {at().other_dns, 53}; }
  [[nodiscard]] Landing query_from(std::uint16_t port, const Actor& actor) const {
    return pod_->connect(actor, {.to = server(), .protocol = Protocol::udp, .from = pod(port)});
  }
  void expect_bypass(const Actor& actor, const Endpoint& to) const {
    EXPECT_EQ(connect(actor, to), landed(Role::outside, local(to)));
  }
  void expect_captured(const Actor& actor, const Endpoint& to) const {
    EXPECT_EQ(connect(actor, to), landed(Role::proxy_outbound, original(to)));
  }
};
INSTANTIATE_TEST_SUITE_P(, ExcludedOwners, settings(), setting_name);

TEST_P(ExcludedOwners, BypassTheProxyByUid) {
  apply("-i * -b * --exclude-uids 101,2000-2999");
  for (const uid_t uid : {101U, 2000U, 2500U, 2999U}) expect_bypass(as(uid), service(80));
  for (const uid_t uid : {100U, 102U, 1000U, 1999U, 3000U}) expect_captured(as(uid), service(80));
  expect_captured(as(1000, 101), service(80));
}

TEST_P(ExcludedOwners, BypassTheProxyByGid) {
  apply("-i * -b * --exclude-gids 101,2000-2999");
  for (const gid_t gid : {101U, 2000U, 2999U}) expect_bypass(as(1000, gid), service(80));
  for (const gid_t gid : {100U, 1999U, 3000U}) expect_captured(as(1000, gid), service(80));
  expect_captured(as(101), service(80));
}

TEST_P(ExcludedOwners, BypassTheProxyToSomePorts) {
  apply("-i * -b * --exclude-uid-ports 101:443,9000-9500,2000-2999:80");
  expect_bypass(as(101), service(443));
  expect_bypass(as(101), service(9443));
  expect_bypass(as(2500), service(80));
  expect_captured(as(101), service(80));
  expect_captured(as(2500), service(443));
  expect_captured(as_app, service(443));
}

TEST_P(ExcludedOwners, BypassTheProxyToRangesAndPortsThatAreCaptured) {
  apply("-i " + both(&Addresses::service_range) + " -q 9443 --exclude-uids 101");
  expect_bypass(as(101), service(80));
  expect_bypass(as(101), other_service(9443));
  expect_captured(as_app, service(80));
  expect_captured(as_app, other_service(9443));
}

// A range of ids with the proxy's among them: its calls to this pod still count as inbound.
TEST_P(ExcludedOwners, LeaveTheProxyWhatItIs) {
  apply("-i * -b * --exclude-uids 1000-1999 --exclude-gids 1337");
  for (const Actor& actor : {as_proxy, as_proxy_user}) {
    expect_bypass(actor, service(80));
    EXPECT_EQ(connect(actor, pod(8080)), landed(Role::proxy_inbound, original(pod(8080))));
  }
  expect_bypass(as_app, service(80));
}

TEST_P(ExcludedOwners, ReachThisPodItself) {
  for (const char* options : {"-i * -b *", "-i * -b * --redirect-dns --capture-all-dns"}) {
    pod_.emplace();
    apply(std::string(options) + " --exclude-uids 101");
    EXPECT_EQ(connect(as(101), pod(8080)), landed(Role::app, local(pod(8080))));
    EXPECT_EQ(connect(as(101), loopback(8080)), landed(Role::app, local(loopback(8080))));
    EXPECT_EQ(connect(as(101), pod(53)), landed(Role::refused));
    EXPECT_EQ(send(as(101), pod(5000)), landed(Role::app, local(pod(5000))));
  }
}

// A range of loopback addresses that is captured, which the app's own traffic over lo goes by.
TEST_P(ExcludedOwners, ReachThisPodItselfWhereLoIsCaptured) {
  apply("-i 127.0.0.0/8,10.1.0.0/24,::1/128,fd00:1::/64 --exclude-uids 101");
  EXPECT_EQ(connect(as_app, pod(8080)), landed(Role::proxy_outbound, original(pod(8080))));
  EXPECT_EQ(connect(as(101), pod(8080)), landed(Role::app, local(pod(8080))));
}

TEST_P(ExcludedOwners, AskTheNameServersThemselves) {
  for (const std::string all : {"", " --capture-all-dns"}) {
    for (const char* who : {"--exclude-uids 101", "--exclude-gids 101", "--exclude-uid-ports 101:53"}) {
      pod_.emplace();
      apply("-i * -b * --redirect-dns --dns-server " + both(&Addresses::dns) + all + " " + who);
      const Actor excluded = as(101, 101);
      EXPECT_EQ(send(excluded, server()), landed(Role::outside, local(server())));
      EXPECT_EQ(connect(excluded, server()), landed(Role::outside, local(server())));
      EXPECT_EQ(send(excluded, other_server()), landed(Role::outside, local(other_server())));
      EXPECT_EQ(connect(excluded, other_server()), landed(Role::outside, local(other_server())));
      EXPECT_EQ(send(as_app, server()), landed(Role::dns, local(loopback(15053))));
    }
  }
}

TEST_P(ExcludedOwners, AskTheProxyUnlessPort53IsExcluded) {
  apply("-i * -b * --redirect-dns --dns-server " + both(&Addresses::dns) + " --exclude-uid-ports 101:54-443");
  EXPECT_EQ(send(as(101), server()), landed(Role::dns, local(loopback(15053))));
  EXPECT_EQ(connect(as(101), server()), landed(Role::dns, original(server())));
}

// As the proxy's own: the app's query and theirs from the same port to the same server would be one flow, and the
// second of them be sent where the first one went.
TEST_P(ExcludedOwners, AskFromThePortThatTheAppAsksFrom) {
  for (const std::string all : {"", " --capture-all-dns"}) {
    pod_.emplace();
    apply("-i * -b * --redirect-dns --dns-server " + both(&Addresses::dns) + all + " --exclude-uids 101");
    EXPECT_EQ(query_from(40000, as_app), landed(Role::dns, local(loopback(15053))));
    EXPECT_EQ(query_from(40000, as(101)), landed(Role::outside, local(server())));
    EXPECT_EQ(query_from(40001, as(101)), landed(Role::outside, local(server())));
    EXPECT_EQ(query_from(40001, as_app), landed(Role::dns, local(loopback(15053))));
  }
}

// The answer belongs to the query for connection tracking, too: a firewall that keeps state lets it pass.
TEST_P(ExcludedOwners, AreTrackedAsTheirAnswersAre) {
  pod_->listen(as_app, Role::app, {.tcp = {}, .udp = {53}});
  pod_->ns().must({"nft", "add table inet firewall"});
  pod_->ns().must({"nft", "add chain inet firewall input { type filter hook input priority 0; }"});
  pod_->ns().must({"nft", "add rule inet firewall input udp sport 53 ct state new drop"});
  const std::string own = "," + std::string(at().pod) + "," + std::string(at().any_loopback);
  for (const std::string all : {"", " --capture-all-dns"}) {
    apply("-i * -b * --redirect-dns --dns-server " + both(&Addresses::dns) + own + all + " --exclude-uids 101");
    for (const Endpoint& to : {server(), other_server()})
      EXPECT_EQ(send(as(101), to), landed(Role::outside, local(to)));
    for (const Endpoint& to : {pod(53), loopback(53)}) EXPECT_EQ(send(as(101), to), landed(Role::app, local(to)));
    EXPECT_EQ(send(as_app, server()), landed(Role::dns, local(loopback(15053))));
  }
}

class ExcludedOwnersTproxy : public Traffic {
 protected:
  ExcludedOwnersTproxy() : Traffic(Pod::Options{.transparent_proxy = true}) {}
};
INSTANTIATE_TEST_SUITE_P(, ExcludedOwnersTproxy, settings(), setting_name);

TEST_P(ExcludedOwnersTproxy, BypassTheProxyAndReachThisPod) {
  apply("-m TPROXY -i * -b * --exclude-uids 101 --exclude-gids 2000-2999 --exclude-uid-ports 102:443");
  for (const Actor& actor : {as(101), as(1000, 2500)}) {
    EXPECT_EQ(connect(actor, service(80)), landed(Role::outside, local(service(80))));
    EXPECT_EQ(connect(actor, pod(8080)), landed(Role::app, local(pod(8080))));
    EXPECT_EQ(connect(actor, loopback(8080)), landed(Role::app, local(loopback(8080))));
  }
  EXPECT_EQ(connect(as(102), service(443)), landed(Role::outside, local(service(443))));
  EXPECT_EQ(connect(as(102), service(80)), landed(Role::proxy_outbound, original(service(80))));
  EXPECT_EQ(connect(as_app, service(80)), landed(Role::proxy_outbound, original(service(80))));
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::proxy_inbound, local(pod(8080))));
}

}  // namespace
}  // namespace sidetrack::netns
