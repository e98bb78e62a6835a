// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

class Dns : public Traffic {
 protected:
  [[nodiscard]] Endpoint server() const { return {at().dns, 53}; }
  [[nodiscard]] Endpoint other_server() const { return {at().other_dns, 53}; }

  void capture(const std::string& options) const {
    apply("-b * -i * " + options + " --dns-server " + both(&Addresses::dns));
  }
  // A query from a port that the asker chooses: the port of another query, too.
  [[nodiscard]] Landing query_from(std::uint16_t port, const Actor& actor) const {
    return pod_->connect(actor, {.to = server(), .protocol = Protocol::udp, .from = pod(port)});
  }
};
INSTANTIATE_TEST_SUITE_P(, Dns, settings(), setting_name);

TEST_P(Dns, IsNotCapturedByDefault) {
  apply(injected);
  EXPECT_EQ(send(as_app, server()), landed(Role::outside, local(server())));
  EXPECT_EQ(connect(as_app, server()), landed(Role::proxy_outbound, original(server())));
}

// That the answer comes from where the question went is part of every landing.
TEST_P(Dns, OfTheAppLandsOnTheProxysDnsPort) {
  EXPECT_EQ(send(as_app, server()), landed(Role::outside, local(server())));
  EXPECT_EQ(connect(as_app, server()), landed(Role::outside, local(server())));
  capture("--redirect-dns");
  EXPECT_EQ(send(as_app, server()), landed(Role::dns, local(loopback(15053))));
  EXPECT_EQ(connect(as_app, server()), landed(Role::dns, original(server())));
}

TEST_P(Dns, ToOtherServersIsNot) {
  capture("--redirect-dns");
  EXPECT_EQ(send(as_app, other_server()), landed(Role::outside, local(other_server())));
  EXPECT_EQ(connect(as_app, other_server()), landed(Role::proxy_outbound, original(other_server())));
}

TEST_P(Dns, ToEveryServerLandsOnTheProxysDnsPort) {
  capture("--redirect-dns --capture-all-dns");
  for (const Endpoint& to : {server(), other_server(), loopback(53), pod(53)}) {
    EXPECT_EQ(send(as_app, to), landed(Role::dns, local(loopback(15053))));
    EXPECT_EQ(connect(as_app, to), landed(Role::dns, original(to)));
  }
}

TEST_P(Dns, OfTheProxyLeaves) {
  for (const auto* options : {"--redirect-dns", "--redirect-dns --capture-all-dns"}) {
    pod_.emplace();
    capture(options);
    for (const Actor& actor : {as_proxy, as_proxy_user, as_proxy_group}) {
      EXPECT_EQ(send(actor, server()), landed(Role::outside, local(server())));
      EXPECT_EQ(connect(actor, server()), landed(Role::outside, local(server())));
    }
  }
}

// The app's query and the proxy's own, from the same port to the same server, are one flow to connection tracking
// unless they are in zones of their own: then the second is not sent where the first one went. The proxy is known by
// its uid or by its gid.
TEST_P(Dns, QueriesFromTheSamePortDoNotClash) {
  for (const auto* options : {"--redirect-dns", "--redirect-dns --capture-all-dns"}) {
    for (const Actor& proxy : {as_proxy, as_proxy_user, as_proxy_group}) {
      pod_.emplace(Pod::Options{.proxy = proxy.identity});
      capture(options);
      EXPECT_EQ(query_from(40000, as_app), landed(Role::dns, local(loopback(15053))));
      EXPECT_EQ(query_from(40000, proxy), landed(Role::outside, local(server())));
      EXPECT_EQ(query_from(40001, proxy), landed(Role::outside, local(server())));
      EXPECT_EQ(query_from(40001, as_app), landed(Role::dns, local(loopback(15053))));
    }
  }
}

TEST_P(Dns, AnExcludedPort53Leaves) {
  capture("--redirect-dns -o 53");
  EXPECT_EQ(send(as_app, server()), landed(Role::outside, local(server())));
  EXPECT_EQ(connect(as_app, server()), landed(Role::outside, local(server())));
}

TEST_P(Dns, LeavesOtherTrafficAsItIs) {
  capture("--redirect-dns");
  EXPECT_EQ(connect(as_app, service(80)), landed(Role::proxy_outbound, original(service(80))));
  EXPECT_EQ(send(as_app, service(443)), landed(Role::outside, local(service(443))));
  EXPECT_EQ(connect(as_app, pod(8080)), landed(Role::app, local(pod(8080))));
  EXPECT_EQ(connect(as_proxy, pod(8080)), landed(Role::proxy_inbound, original(pod(8080))));
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::proxy_inbound, original(pod(8080))));
}

}  // namespace
}  // namespace sidetrack::netns
