// SPDX-License-Identifier: GPL-2.0-or-later
// An ambient pod beside a stand-in for ztunnel: its sockets have the mark 0x539, and towards the app it keeps the
// client's address.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "pod/ztunnel.h"
#include "support/agents.h"
#include "support/network.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view ambient = "--dataplane ambient";

class Ambient : public Traffic {
 protected:
  Ambient() : Traffic(Pod::Options{.ztunnel = true}) {}

  // As ztunnel, to another host or to the app.
  [[nodiscard]] Landing as_marked(const Endpoint& to, Protocol protocol = Protocol::tcp, unsigned mark = ztunnel_mark,
                                  std::optional<Endpoint> from = {}) const {
    return pod_->connect(as_ztunnel, {.to = to,
                                      .protocol = protocol,
                                      .from = std::move(from),
                                      .mark = mark,
                                      .patience = std::chrono::milliseconds(1000)});
  }
  // The connection that ztunnel makes for a client that it has let in: from the client's own address.
  [[nodiscard]] Landing as_client(std::uint16_t from_port) const {
    return pod_->connect(as_ztunnel, {.to = pod(8080),
                                      .protocol = Protocol::tcp,
                                      .from = Endpoint(at().client, from_port),
                                      .transparent = true,
                                      .mark = ztunnel_mark,
                                      .patience = std::chrono::milliseconds(1000)});
  }
  // The kubelet's probe, as the node sends it.
  [[nodiscard]] Landing probe(std::string_view address, std::uint16_t port) const {
    ip(pod_->at(Place::outside), "addr add " + std::string(address) + (family() == Family::ipv4 ? "/32" : "/128") +
                                     " dev lo" + (family() == Family::ipv6 ? " nodad" : "") + "\n");
    return pod_->connect(from_outside, {.to = pod(port), .protocol = Protocol::tcp, .from = Endpoint(address, 0)});
  }
  [[nodiscard]] std::string_view usual_probe_address() const {
    return family() == Family::ipv4 ? "169.254.7.127" : "fd16:9254:7127:1337:ffff:ffff:ffff:ffff";
  }
  [[nodiscard]] Output sidetrack(std::vector<std::string> words) const {
    words.insert(words.begin(), program_under_test());
    return pod_->ns().program(words);
  }
  [[nodiscard]] std::string backend() const { return std::get<const char*>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(, Ambient, settings(), setting_name);

TEST_P(Ambient, InboundIsRedirectedToThePlaintextListener) {
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::app, local(pod(8080))));
  apply(ambient);
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::proxy_inbound, original(pod(8080))));
  EXPECT_EQ(connect(from_outside, pod(15021)), landed(Role::proxy_inbound, original(pod(15021))));
  EXPECT_EQ(connect(from_outside, pod(9)), landed(Role::proxy_inbound, original(pod(9))));
}

TEST_P(Ambient, HboneArrivesAsItIs) {
  apply(ambient);
  EXPECT_EQ(connect(from_outside, pod(15008)), landed(Role::tunnel, local(pod(15008))));
}

TEST_P(Ambient, OutboundIsRedirectedWhoeverSendsIt) {
  EXPECT_EQ(connect(as_app, service(80)), landed(Role::outside, local(service(80))));
  apply(ambient);
  EXPECT_EQ(connect(as_app, service(80)), landed(Role::proxy_outbound, original(service(80))));
  EXPECT_EQ(connect(as_proxy, service(80)), landed(Role::proxy_outbound, original(service(80))));
  EXPECT_EQ(send(as_app, service(443)), landed(Role::outside, local(service(443))));
}

TEST_P(Ambient, WhatZtunnelSendsGoesOutAsItIs) {
  apply(ambient);
  EXPECT_EQ(as_marked(service(80)), landed(Role::outside, local(service(80))));
  // Twelve bits of the mark are its.
  EXPECT_EQ(as_marked(service(80), Protocol::tcp, 0x7000 | ztunnel_mark), landed(Role::outside, local(service(80))));
  EXPECT_EQ(as_marked(service(80), Protocol::tcp, 0x538), landed(Role::proxy_outbound, original(service(80))));
}

// The answers of the app go to the client's address: the mark of the connection and the policy route bring them back.
TEST_P(Ambient, ZtunnelReachesTheAppFromTheClientsAddress) {
  apply(ambient);
  EXPECT_EQ(as_client(41000), landed(Role::app, local(pod(8080))));
  pod_->ns().must({"ip", family() == Family::ipv4 ? "-4" : "-6", "rule", "del", "pref", "32764"});
  EXPECT_EQ(as_client(41001), landed(Role::no_answer)) << "without the policy rule";
  const Output verified = sidetrack({"verify", "--dataplane", "ambient", "--dual-stack"});
  EXPECT_EQ(verified.exit_code, 6);
  EXPECT_THAT(verified.out, HasSubstr("rule add pref 32764 fwmark 0x111/0xfff lookup 100"));
  apply(ambient);
  EXPECT_EQ(as_client(41002), landed(Role::app, local(pod(8080)))) << "mended";
}

TEST_P(Ambient, TheAppReachesItself) {
  apply(ambient);
  EXPECT_EQ(connect(as_app, pod(8080)), landed(Role::app, local(pod(8080))));
  EXPECT_EQ(connect(as_app, loopback(8080)), landed(Role::app, local(loopback(8080))));
}

TEST_P(Ambient, TheKubeletsProbesReachTheApp) {
  apply(ambient);
  EXPECT_EQ(probe(usual_probe_address(), 8080), landed(Role::app, local(pod(8080))));
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::proxy_inbound, original(pod(8080))));
}

// Istio 1.21 to 1.23: what replaces or removes their rules leaves nothing of TPROXY, which would take the probes.
TEST_P(Ambient, TheRulesOfTproxyGoWhole) {
  const Landing at_the_app = landed(Role::app, local(pod(8080)));
  EXPECT_EQ(probe(usual_probe_address(), 8080), at_the_app);
  const auto probed = [&] {
    return pod_->connect(from_outside,
                         {.to = pod(8080), .protocol = Protocol::tcp, .from = Endpoint(usual_probe_address(), 0)});
  };
  for (const Agent& agent : agents()) {
    if (!std::string_view(agent.name).starts_with("istio_tproxy")) continue;
    agent.make(pod_->ns());
    EXPECT_EQ(probed(), at_the_app) << agent.name;
    apply(ambient);
    EXPECT_EQ(probed(), at_the_app) << agent.name;
    EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::proxy_inbound, original(pod(8080)))) << agent.name;
    EXPECT_EQ(connect(from_outside, pod(15008)), landed(Role::tunnel, local(pod(15008)))) << agent.name;
    EXPECT_EQ(sidetrack({"clean"}).exit_code, 0);
    agent.make(pod_->ns());
    EXPECT_EQ(sidetrack({"clean", "--dataplane", "ambient"}).exit_code, 0);
    EXPECT_EQ(connect(from_outside, pod(8080)), at_the_app) << agent.name;
    EXPECT_THAT(everything(pod_->ns()), ::testing::Not(HasSubstr("TPROXY"))) << agent.name;
  }
}

TEST_P(Ambient, TheAddressOfProbesMayBeAnother) {
  apply("--dataplane ambient --probe-address 169.254.9.9 --probe-address6 fd00:9::9");
  EXPECT_EQ(probe(family() == Family::ipv4 ? "169.254.9.9" : "fd00:9::9", 8080), landed(Role::app, local(pod(8080))));
  EXPECT_EQ(probe(usual_probe_address(), 8080), landed(Role::proxy_inbound, original(pod(8080))));
}

TEST_P(Ambient, AGatewayGetsItsInboundItself) {
  apply("--dataplane ambient --ingress");
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::app, local(pod(8080))));
  EXPECT_EQ(connect(as_app, service(80)), landed(Role::proxy_outbound, original(service(80))));
}

TEST_P(Ambient, DnsGoesToItsResolver) {
  const Endpoint server(at().dns, 53);
  apply(ambient);
  EXPECT_EQ(send(as_app, server), landed(Role::outside, local(server)));
  EXPECT_EQ(connect(as_app, server), landed(Role::proxy_outbound, original(server)));
  apply("--dataplane ambient --redirect-dns");
  for (const auto address : {at().dns, at().other_dns}) {
    const Endpoint asked(address, 53);
    EXPECT_EQ(send(as_app, asked).role, Role::dns);
    EXPECT_EQ(connect(as_app, asked), landed(Role::dns, original(asked)));
    EXPECT_EQ(as_marked(asked, Protocol::udp), landed(Role::outside, local(asked)));
    EXPECT_EQ(as_marked(asked, Protocol::tcp), landed(Role::outside, local(asked)));
  }
}

// The app's query and ztunnel's own, from one port to the same server, are two connections: ztunnel's is tracked in a
// zone of its own.
TEST_P(Ambient, QueriesFromOnePortAreApart) {
  const Endpoint server(at().dns, 53);
  apply("--dataplane ambient --redirect-dns");
  const Endpoint from(at().pod, 42000);
  EXPECT_EQ(pod_->connect(as_app, {.to = server, .protocol = Protocol::udp, .from = from}).role, Role::dns);
  EXPECT_EQ(as_marked(server, Protocol::udp, ztunnel_mark, from), landed(Role::outside, local(server)));
}

// A client that sends from port 53: the app's reply looks like a query. explain says what the kernel does.
TEST_P(Ambient, RepliesToPort53AreTakenForQueries) {
  pod_->listen(as_app, Role::app, {.tcp = {}, .udp = {5001, 5002}});
  const auto arrives = [&](std::uint16_t port) {  // each time another one: of the last connection the kernel knows
    const Landing landing = pod_->connect(from_outside, {.to = pod(port),
                                                         .protocol = Protocol::udp,
                                                         .from = Endpoint(at().client, 53),
                                                         .patience = std::chrono::milliseconds(1000)});
    const Output said = sidetrack(
        {"explain", "--json", "in", "udp", pod(port).text(), "--from", std::string(at().client), "--from-port", "53"});
    EXPECT_EQ(said.exit_code, 0) << said.err;
    const auto outcome = nlohmann::json::parse(said.out).at("outcome");
    EXPECT_EQ(outcome.value("answers", "arrive"), landing.role == Role::app ? "arrive" : "lost") << outcome;
    return landing.role == Role::app;
  };
  EXPECT_TRUE(arrives(5000));
  apply(ambient);
  EXPECT_TRUE(arrives(5001));
  apply("--dataplane ambient --redirect-dns");
  EXPECT_FALSE(arrives(5002));
}

TEST_P(Ambient, WhatAVirtualMachineSendsIsOutbound) {
  EXPECT_EQ(connect(from_guest, service(80)), landed(Role::outside, local(service(80))));
  apply("--dataplane ambient -k net1");
  EXPECT_EQ(connect(from_guest, service(80)), landed(Role::proxy_outbound, original(service(80))));
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::proxy_inbound, original(pod(8080))));
}

TEST_P(Ambient, PortsMayBeOthers) {
  pod_->listen(as_ztunnel, Role::proxy_outbound, {.tcp = {16001}, .udp = {}, .mark = ztunnel_mark});
  pod_->listen(as_ztunnel, Role::proxy_inbound, {.tcp = {16006}, .udp = {}, .mark = ztunnel_mark});
  apply("--dataplane ambient -p 16001 -z 16006 -e 8081");
  EXPECT_EQ(connect(as_app, service(80)), landed(Role::proxy_outbound, original(service(80))));
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::proxy_inbound, original(pod(8080))));
  EXPECT_EQ(connect(from_outside, pod(8081)), landed(Role::app, local(pod(8081))));
  EXPECT_EQ(connect(from_outside, pod(15008)), landed(Role::proxy_inbound, original(pod(15008))));
}

// From one dataplane to the other and back, in one step; what is there then is all that was asked for.
TEST_P(Ambient, SwapsWithASidecar) {
  const std::vector<std::string> of_sidecar{"-i", "*", "-b", "*", "-d", "15021", "--dual-stack"};
  const std::vector<std::string> of_ambient{"--dataplane", "ambient", "--dual-stack"};
  const auto call = [&](const char* command, const std::vector<std::string>& options) {
    std::vector<std::string> words{command, "--backend", backend()};
    words.insert(words.end(), options.begin(), options.end());
    return sidetrack(words);
  };
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(call("apply", of_sidecar).exit_code, 0);
    EXPECT_EQ(call("verify", of_sidecar).exit_code, 0);
    EXPECT_EQ(call("verify", of_ambient).exit_code, 6);
    EXPECT_EQ(connect(from_outside, pod(15021)), landed(Role::app, local(pod(15021))));
    EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::proxy_inbound, original(pod(8080))));
    EXPECT_EQ(pod_->ns().must({"ip", "rule", "list", "table", "100"}), "");

    const Output applied = call("apply", of_ambient);
    ASSERT_EQ(applied.exit_code, 0) << applied.err;
    EXPECT_EQ(call("verify", of_ambient).exit_code, 0);
    EXPECT_THAT(call("apply", of_ambient).err, HasSubstr("nothing to change"));
    EXPECT_EQ(call("verify", of_sidecar).exit_code, 6);
    EXPECT_EQ(connect(from_outside, pod(15021)), landed(Role::proxy_inbound, original(pod(15021))));
    EXPECT_EQ(as_client(static_cast<std::uint16_t>(42000 + round)), landed(Role::app, local(pod(8080))));
  }
  const Output cleaned = sidetrack({"clean"});
  EXPECT_EQ(cleaned.exit_code, 0) << cleaned.err;
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::app, local(pod(8080))));
  EXPECT_EQ(pod_->ns().must({"ip", "rule", "list", "table", "100"}), "");
  EXPECT_THAT(sidetrack({"clean", "--dataplane", "ambient"}).err, HasSubstr("nothing to remove"));
}

// Another backend's rules of ours go, whichever dataplane they are of.
TEST_P(Ambient, MovesToAnotherBackend) {
  apply(ambient);
  for (const char* other : backends) {
    const Output applied = sidetrack({"apply", "--backend", other, "--dataplane", "ambient", "--dual-stack"});
    ASSERT_EQ(applied.exit_code, 0) << applied.err;
    EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::proxy_inbound, original(pod(8080))));
    EXPECT_EQ(sidetrack({"verify", "--backend", other, "--dataplane", "ambient", "--dual-stack"}).exit_code, 0);
  }
}

TEST_P(Ambient, ExplainsWhatHappens) {
  apply("--dataplane ambient --redirect-dns");
  const auto explained = [&](std::vector<std::string> packet) {
    packet.insert(packet.begin(), {"explain"});
    packet.emplace_back("--brief");
    return sidetrack(packet).out;
  };
  const std::string to = Endpoint(at().service, 80).text();
  EXPECT_THAT(explained({"out", "tcp", to, "--uid", "1000"}), HasSubstr("15001"));
  EXPECT_THAT(explained({"out", "tcp", to, "--mark", "0x539"}), ::testing::Not(HasSubstr("15001")));
  EXPECT_THAT(explained({"in", "tcp", Endpoint(at().pod, 8080).text()}), HasSubstr("15006"));
  EXPECT_THAT(explained({"out", "udp", Endpoint(at().dns, 53).text()}), HasSubstr("15053"));
}

TEST_P(Ambient, ProbesRealConnections) {
  apply("--dataplane ambient --redirect-dns");
  // The listeners of the stand-in are those of the probe.
  const Output verified = sidetrack({"verify", "--probe", "--dataplane", "ambient", "--redirect-dns", "--dual-stack"});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("outbound tcp"));
  EXPECT_THAT(verified.out, HasSubstr("dns udp"));
  EXPECT_THAT(verified.out, HasSubstr("ztunnel to the app tcp"));
}

}  // namespace
}  // namespace sidetrack::netns
