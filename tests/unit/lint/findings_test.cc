// SPDX-License-Identifier: GPL-2.0-or-later
// All that is said of findings: what is wrong, a packet that shows it, where that ends, and what to do.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "inject/manifest/facts.h"
#include "inject/manifest/read.h"
#include "lint/lint.h"
#include "render/render.h"
#include "unit/asking.h"
#include "unit/live_rules.h"
#include "walk/explain.h"

namespace sidetrack::lint {
namespace {

PodView pod_with_link_local() {
  PodView pod = assumed_pod(planned(""));
  pod.interface("eth0")->addresses.push_back({*Address::parse("fe80::2"), 64});
  return pod;
}

std::string text_of_options(std::string_view options, const PodFacts* manifest = nullptr,
                            std::optional<PodView> pod = {}) {
  CommandLine line;
  const HostFacts facts = asked(options, line);
  const Findings found =
      lint_options({.config = line.config, .facts = facts, .pod = std::move(pod), .manifest = manifest});
  return fmt::format("# {}\n{}", options, lint_text(found, false));
}

TEST(Findings, OfValuesThatOthersOfTheirListCover) {
  EXPECT_EQ("\n" + text_of_options("-i 10.0.0.0/8,10.1.0.0/16,10.0.0.0/8 -o 80,79-81 --ip-families ipv4"), R"(
# -i 10.0.0.0/8,10.1.0.0/16,10.0.0.0/8 -o 80,79-81 --ip-families ipv4
ST002 value without effect: -i 10.0.0.0/8
  why      it is given twice
  witness  sidetrack explain out tcp 10.0.0.1:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out
ST002 value without effect: -i 10.1.0.0/16
  why      10.0.0.0/8 covers it
  witness  sidetrack explain out tcp 10.1.0.1:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out
ST002 value without effect: -o 80
  why      79-81 covers it
  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out
)");
}

TEST(Findings, OfPortsThatAnotherOptionDecidesAbout) {
  EXPECT_EQ("\n" + text_of_options("-i 10.0.0.0/8 -o 443 -q 443,80 -b 80 -d 22 --ip-families ipv4"), R"(
# -i 10.0.0.0/8 -o 443 -q 443,80 -b 80 -d 22 --ip-families ipv4
ST001 option without effect: -d 22
  why      makes no rule
  witness  sidetrack explain in tcp 192.0.2.2:22 --in-interface eth0
           -> reaches the pod untouched
  remedy   leave it out
ST002 value without effect: -q 443
  why      without it, every packet has the same outcome; -o 443 decides about the witness
  witness  sidetrack explain out tcp 198.51.100.1:443 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out, or change what decides before it
)");
}

TEST(Findings, OfOptionsThatMakeNoRule) {
  EXPECT_EQ(
      "\n" + text_of_options(
                 "-m NONE -i * -b 80 -c eth1 -k net+ -e 9 -o 22 --redirect-dns --drop-invalid --ip-families ipv4"),
      R"(
# -m NONE -i * -b 80 -c eth1 -k net+ -e 9 -o 22 --redirect-dns --drop-invalid --ip-families ipv4
ST001 option without effect: -e 9
  why      makes no rule
  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out
ST001 option without effect: -b 80
  why      makes no rule
  witness  sidetrack explain in tcp 192.0.2.2:80 --in-interface eth0
           -> reaches the pod untouched
  remedy   leave it out
ST001 option without effect: -c eth1
  why      makes no rule
  witness  sidetrack explain in tcp 192.0.2.2:80 --in-interface eth0
           -> reaches the pod untouched
  remedy   leave it out
ST001 option without effect: -i '*'
  why      makes no rule
  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out
ST001 option without effect: -o 22
  why      makes no rule
  witness  sidetrack explain out tcp 198.51.100.1:22 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out
ST001 option without effect: -k net+
  why      makes no rule
  witness  sidetrack explain in tcp 192.0.2.2:80 --in-interface eth0
           -> reaches the pod untouched
  remedy   leave it out
ST001 option without effect: --redirect-dns
  why      makes no rule
  witness  sidetrack explain out tcp 198.51.100.1:53 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out
ST001 option without effect: --drop-invalid
  why      makes no rule
  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out
)");
}

TEST(Findings, OfUdpThatIsCaptured) {
  EXPECT_EQ("\n" + text_of_options("-m TPROXY --capture-udp 443,443,440-450 --ip-families ipv4"), R"(
# -m TPROXY --capture-udp 443,443,440-450 --ip-families ipv4
ST002 value without effect: --capture-udp 443
  why      it is given twice
  witness  sidetrack explain in udp 192.0.2.2:443 --in-interface eth0
           -> port 15006 (Envoy inbound) by TPROXY
  remedy   leave it out
ST002 value without effect: --capture-udp 443
  why      440-450 covers it
  witness  sidetrack explain in udp 192.0.2.2:443 --in-interface eth0
           -> port 15006 (Envoy inbound) by TPROXY
  remedy   leave it out
)");
}

TEST(Findings, OfOptionsOfTproxyWithoutIt) {
  EXPECT_EQ("\n" + text_of_options("-b 80 -t 7 -r 9 --capture-all-dns --ip-families ipv4"), R"(
# -b 80 -t 7 -r 9 --capture-all-dns --ip-families ipv4
ST001 option without effect: -t 7
  why      makes no rule
  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out
ST001 option without effect: -r 9
  why      makes no rule
  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out
ST001 option without effect: --capture-all-dns
  why      makes no rule
  witness  sidetrack explain out tcp 198.51.100.1:53 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out
)");
}

TEST(Findings, OfExcludedUids) {
  EXPECT_EQ("\n" + text_of_options("-i * --exclude-uids 1337,5,1-9 --ip-families ipv4"), R"(
# -i * --exclude-uids 1337,5,1-9 --ip-families ipv4
ST002 value without effect: --exclude-uids 5
  why      1-9 covers it
  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 5 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out
ST002 value without effect: --exclude-uids 1337
  why      without it, every packet has the same outcome; -u 1337 decides about the witness
  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 1337 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out, or change what decides before it
)");
}

TEST(Findings, OfExcludedGids) {
  EXPECT_EQ(
      "\n" + text_of_options("-i * --exclude-gids 1337,5 ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE=5 --ip-families ipv4"),
      R"(
# -i * --exclude-gids 1337,5 ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE=5 --ip-families ipv4
ST001 option without effect: --exclude-gids 1337,5
  why      without it, every packet has the same outcome; -g 1337 decides about the witness
  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 1000 --gid 1337
           -> leaves untouched, by eth0
  remedy   leave it out
)");
}

TEST(Findings, OfExcludedPortsOfUids) {
  EXPECT_EQ("\n" + text_of_options("-i * --exclude-uid-ports 5:80,5:80,1337:443 --ip-families ipv4"), R"(
# -i * --exclude-uid-ports 5:80,5:80,1337:443 --ip-families ipv4
ST002 value without effect: --exclude-uid-ports 5:80
  why      it is given twice
  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 5 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out
ST001 option without effect: --exclude-uid-ports 1337:443
  why      without it, every packet has the same outcome; -u 1337 decides about the witness
  witness  sidetrack explain out tcp 198.51.100.1:443 --uid 1337 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out
)");
}

TEST(Findings, OfCgroups) {
  EXPECT_EQ("\n" + text_of_options("-i * --bypass-cgroup a/b,a --ip-families ipv4"), R"(
# -i * --bypass-cgroup a/b,a --ip-families ipv4
ST002 value without effect: --bypass-cgroup a/b
  why      a covers it
  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 1000 --gid 1000 --cgroup /a/b
           -> leaves untouched, by eth0
  remedy   leave it out
)");
}

TEST(Findings, OfSeveralProxies) {
  EXPECT_EQ("\n" + text_of_options("-u 1,2,2 -g 1,2 -i * -b * --ip-families ipv4"), R"(
# -u 1,2,2 -g 1,2 -i * -b * --ip-families ipv4
ST002 value without effect: -u 2
  why      it is given twice
  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 2 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out
ST004 escape: tcp of a proxy to this pod itself, IPv4
  why      must go through the inbound listener, as that of the first uid of -u does; what decides: nat: -A ISTIO_OUTPUT -o lo -m owner ! --uid-owner 1 -j RETURN
  witness  sidetrack explain lo tcp 192.0.2.2:80 --uid 2 --gid 1
           -> reaches the pod untouched
  remedy   give one uid: the rules of the first return what the others send
ST006 port of the proxy captured: inbound tcp to port 15020 (merged Prometheus telemetry and agent health)
  why      the proxy answers there itself, without its inbound listener; what decides: nat: -A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006
  witness  sidetrack explain in tcp 192.0.2.2:15020 --in-interface eth0
           -> 192.0.2.2:15006 (Envoy inbound)
  remedy   add 15020 to -d; where -b is a list, leave 15020 out of that
ST006 port of the proxy captured: inbound tcp to port 15021 (readiness)
  why      the proxy answers there itself, without its inbound listener; what decides: nat: -A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006
  witness  sidetrack explain in tcp 192.0.2.2:15021 --in-interface eth0
           -> 192.0.2.2:15006 (Envoy inbound)
  remedy   add 15021 to -d; where -b is a list, leave 15021 out of that
ST006 port of the proxy captured: inbound tcp to port 15090 (Envoy Prometheus telemetry)
  why      the proxy answers there itself, without its inbound listener; what decides: nat: -A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006
  witness  sidetrack explain in tcp 192.0.2.2:15090 --in-interface eth0
           -> 192.0.2.2:15006 (Envoy inbound)
  remedy   add 15090 to -d; where -b is a list, leave 15090 out of that
)");
}

TEST(Findings, OfInterfaces) {
  EXPECT_EQ("\n" + text_of_options("-b 80 -c net1,net1 --ip-families ipv4"), R"(
# -b 80 -c net1,net1 --ip-families ipv4
ST002 value without effect: -c net1
  why      it is given twice
  witness  sidetrack explain in tcp 192.0.2.2:80 --in-interface net1
           -> reaches the pod untouched
  remedy   leave it out
)");
}

TEST(Findings, OfAnAmbientPod) {
  EXPECT_EQ("\n" + text_of_options("--dataplane ambient --ingress -k net1 --probe-address6 fd00::9 --ip-families ipv4"),
            R"(
# --dataplane ambient --ingress -k net1 --probe-address6 fd00::9 --ip-families ipv4
ST001 option without effect: --probe-address6 fd00::9
  why      makes no rule; -p 15001 decides about the witness
  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 1000 --gid 1000
           -> 127.0.0.1:15001 (ztunnel outbound)
  remedy   leave it out
)");
}

TEST(Findings, OfAPodWithIpv6ThatIsNotCaptured) {
  EXPECT_EQ("\n" + text_of_options("-i 10.0.0.0/8,fd00::/8 -b 80 -x fd01::/16 --ip-families ipv4", nullptr,
                                   pod_with_link_local()),
            R"(
# -i 10.0.0.0/8,fd00::/8 -b 80 -x fd01::/16 --ip-families ipv4
ST002 value without effect: -i fd00::/8
  why      IPv6 is not captured in this pod
  witness  sidetrack explain out tcp [fd00::1]:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out, or change what decides before it
ST001 option without effect: -x fd01::/16
  why      makes no rule
  witness  sidetrack explain out tcp [fd01::1]:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out
ST005 family not captured: outbound tcp, IPv6
  why      asked to be captured by -i
  witness  sidetrack explain out tcp [fd02::1]:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   give --dual-stack, or remove the pod's IPv6 address
ST005 family not captured: inbound tcp, IPv6
  why      asked to be captured by -b
  witness  sidetrack explain in tcp [2001:db8::2]:80 --in-interface eth0
           -> reaches the pod untouched
  remedy   give --dual-stack, or remove the pod's IPv6 address
)");
}

TEST(Findings, OfAnAmbientPodWithIpv6ThatIsNotCaptured) {
  EXPECT_EQ(
      "\n" + text_of_options("--dataplane ambient --redirect-dns --ip-families ipv4", nullptr, pod_with_link_local()),
      R"(
# --dataplane ambient --redirect-dns --ip-families ipv4
ST005 family not captured: outbound tcp, IPv6
  why      asked to be captured by --dataplane ambient
  witness  sidetrack explain out tcp [2001:db8:ffff::1]:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   give --dual-stack, or remove the pod's IPv6 address
ST005 family not captured: inbound tcp, IPv6
  why      asked to be captured by --dataplane ambient
  witness  sidetrack explain in tcp [2001:db8::2]:80 --in-interface eth0
           -> reaches the pod untouched
  remedy   give --dual-stack, or remove the pod's IPv6 address
)");
}

PodFacts facts(const std::string& manifest) {
  manifest::Documents documents = manifest::parse_documents(manifest, "pod.yaml");
  std::vector<std::string> skipped;
  return manifest::facts_of(manifest::pod_templates(documents, skipped).front(), "istio-proxy");
}

TEST(Findings, OfAManifest) {
  const PodFacts manifest = facts(R"(apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - {name: web, livenessProbe: {httpGet: {port: 8080}}, securityContext: {runAsUser: 1000, runAsGroup: 1337}}
  - {name: cache, securityContext: {runAsUser: 1337}}
  - {name: other, securityContext: {runAsUser: 1336, runAsGroup: 1338}}
)");
  EXPECT_EQ("\n" + text_of_options("-i * -b * -d 15090,15021,15020,22,22 --ip-families ipv4", &manifest) +
                text_of_options("-q 443 -b 80 -d 15090,15021,15020 --ip-families ipv4", &manifest) +
                text_of_options("-b 80 -d 22,15020 --ip-families ipv4", &manifest) +
                text_of_options("--dataplane ambient --ip-families ipv4", &manifest),
            R"(
# -i * -b * -d 15090,15021,15020,22,22 --ip-families ipv4
ST002 value without effect: -d 22
  why      it is given twice
  witness  sidetrack explain in tcp 192.0.2.2:22 --in-interface eth0
           -> reaches the pod untouched
  remedy   leave it out
ST007 health probe captured: container web: livenessProbe on port 8080
  why      the kubelet asks without the mutual TLS that the proxy may want; what decides: nat: -A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006
  witness  sidetrack explain in tcp 192.0.2.2:8080 --in-interface eth0
           -> 192.0.2.2:15006 (Envoy inbound)
  remedy   let the injector rewrite it (annotation sidecar.istio.io/rewriteAppHTTPProbers: "true"), or add 8080 to traffic.sidecar.istio.io/excludeInboundPorts
ST008 container runs as the proxy: container web
  why      runs with gid 1337, which is the proxy's: nothing that it sends is captured
  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 1000 --gid 1337
           -> leaves untouched, by eth0
  remedy   give it another runAsGroup in its securityContext
ST008 container runs as the proxy: container cache
  why      runs with uid 1337, which is the proxy's: nothing that it sends is captured
  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 1337 --gid 1000
           -> leaves untouched, by eth0
  remedy   give it another runAsUser in its securityContext
# -q 443 -b 80 -d 15090,15021,15020 --ip-families ipv4
ST008 container runs as the proxy: container web
  why      runs with gid 1337, which is the proxy's: nothing that it sends is captured
  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 1000 --gid 1337
           -> leaves untouched, by eth0
  remedy   give it another runAsGroup in its securityContext
ST008 container runs as the proxy: container cache
  why      runs with uid 1337, which is the proxy's: nothing that it sends is captured
  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 1337 --gid 1000
           -> leaves untouched, by eth0
  remedy   give it another runAsUser in its securityContext
# -b 80 -d 22,15020 --ip-families ipv4
ST001 option without effect: -d 22,15020
  why      makes no rule
  witness  sidetrack explain in tcp 192.0.2.2:22 --in-interface eth0
           -> reaches the pod untouched
  remedy   leave it out
# --dataplane ambient --ip-families ipv4
no findings
)");
}

// ---- Of live rules.

// Rules of others beside those of the options, before them where they are in the same chain.
std::string of_live(const char* options, std::initializer_list<std::string_view> others) {
  const Plan plan = planned(options);
  Live live = as_live(plan.ruleset, BackendKind::iptables_nft);
  std::string text = fmt::format("# {}", options);
  for (const std::string_view rule : others) text += fmt::format("; {}", rule);
  for (LiveChain& more : rules_of_others(BackendKind::iptables_nft, Family::ipv4, others).chains) {
    const auto there = std::ranges::find_if(live.chains, [&](const LiveChain& chain) {
      return chain.table == more.table && chain.name == more.name && chain.families.contains(Family::ipv4);
    });
    if (there == live.chains.end()) {
      live.chains.push_back(std::move(more));
    } else {
      there->rules.insert(there->rules.begin(), more.rules.begin(), more.rules.end());
    }
  }
  return fmt::format("{}\n{}", text, lint_text(lint_live(pod_with_link_local(), {live}), false));
}

TEST(Findings, OfWhatOthersLeaveAlone) {
  EXPECT_EQ("\n" + of_live("-i * -b * -d 15090,15021,15020 --ip-families ipv4",
                           {"nat -A OUTPUT -p tcp --dport 8000:8999 -j RETURN",
                            "nat -A OUTPUT -p tcp -d 10.0.0.0/8 -j ACCEPT"}),
            R"(
# -i * -b * -d 15090,15021,15020 --ip-families ipv4; nat -A OUTPUT -p tcp --dport 8000:8999 -j RETURN; nat -A OUTPUT -p tcp -d 10.0.0.0/8 -j ACCEPT
ST009 rules of other programs decide: outbound tcp
  why      the sidecar's rules alone capture it; what decides: nat: -A OUTPUT -p tcp --dport 8000:8999 -j RETURN
  witness  sidetrack explain out tcp 198.51.100.1:8080 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   make an exception in the rule of the other program, or leave this traffic out
ST009 rules of other programs decide: outbound tcp
  why      the sidecar's rules alone capture it; what decides: nat: -A OUTPUT -p tcp -d 10.0.0.0/8 -j ACCEPT
  witness  sidetrack explain out tcp 10.0.0.1:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   make an exception in the rule of the other program, or leave this traffic out
ST009 rules of other programs decide: to itself: tcp
  why      the sidecar's rules alone capture it; what decides: nat: -A OUTPUT -p tcp --dport 8000:8999 -j RETURN
  witness  sidetrack explain lo tcp 127.0.0.2:8080 --uid 1337 --gid 1000
           -> reaches the pod untouched
  remedy   make an exception in the rule of the other program, or leave this traffic out
ST005 family not captured: outbound tcp, IPv6
  why      IPv4 is captured, IPv6 is not
  witness  sidetrack explain out tcp [2001:db8:ffff::1]:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   apply with --dual-stack, or remove the pod's IPv6 address
ST005 family not captured: inbound tcp, IPv6
  why      IPv4 is captured, IPv6 is not
  witness  sidetrack explain in tcp [2001:db8::2]:80 --in-interface eth0
           -> reaches the pod untouched
  remedy   apply with --dual-stack, or remove the pod's IPv6 address
)");
}

TEST(Findings, OfWhatNobodyKnows) {
  EXPECT_EQ("\n" + of_live("-i * -b * -d 15090,15021,15020 --ip-families ipv4",
                           {"nat -A PREROUTING -s 10.0.0.0/8 -m bpf -j ACCEPT"}),
            R"(
# -i * -b * -d 15090,15021,15020 --ip-families ipv4; nat -A PREROUTING -s 10.0.0.0/8 -m bpf -j ACCEPT
ST011 outcome unknown: inbound tcp
  why      the sidecar's rules alone capture it; what is not known: `-m bpf`
  witness  sidetrack explain in tcp 192.0.2.2:80 --from 10.0.0.2 --in-interface eth0
           -> unknown: `-m bpf` (192.0.2.2:15006 (Envoy inbound), or reaches the pod untouched)
  remedy   make an exception in the rule of the other program, or leave this traffic out
ST005 family not captured: outbound tcp, IPv6
  why      IPv4 is captured, IPv6 is not
  witness  sidetrack explain out tcp [2001:db8:ffff::1]:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   apply with --dual-stack, or remove the pod's IPv6 address
ST005 family not captured: inbound tcp, IPv6
  why      IPv4 is captured, IPv6 is not
  witness  sidetrack explain in tcp [2001:db8::2]:80 --in-interface eth0
           -> reaches the pod untouched
  remedy   apply with --dual-stack, or remove the pod's IPv6 address
)");
}

TEST(Findings, OfTheProxysOwnTrafficThatOthersDrop) {
  EXPECT_EQ("\n" + of_live("-i * -b * -d 15090,15021,15020 --ip-families ipv4",
                           {"filter -A OUTPUT -m owner --uid-owner 1337 -j DROP"}),
            R"(
# -i * -b * -d 15090,15021,15020 --ip-families ipv4; filter -A OUTPUT -m owner --uid-owner 1337 -j DROP
ST010 the proxy's own traffic is blocked or changed: outbound tcp of the proxy, IPv4
  why      must leave the pod unchanged; what decides: filter: -A OUTPUT -m owner --uid-owner 1337 -j DROP
  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 1337 --gid 1337
           -> dropped
  remedy   let what the proxy's uid and gid send pass
ST010 the proxy's own traffic is blocked or changed: outbound udp of the proxy, IPv4
  why      must leave the pod unchanged; what decides: filter: -A OUTPUT -m owner --uid-owner 1337 -j DROP
  witness  sidetrack explain out udp 198.51.100.1:80 --uid 1337 --gid 1337
           -> dropped
  remedy   let what the proxy's uid and gid send pass
ST009 rules of other programs decide: to itself: tcp
  why      the sidecar's rules alone capture it; what decides: filter: -A OUTPUT -m owner --uid-owner 1337 -j DROP
  witness  sidetrack explain lo tcp 127.0.0.2:80 --uid 1337 --gid 1000
           -> dropped
  remedy   make an exception in the rule of the other program, or leave this traffic out
ST005 family not captured: outbound tcp, IPv6
  why      IPv4 is captured, IPv6 is not
  witness  sidetrack explain out tcp [2001:db8:ffff::1]:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   apply with --dual-stack, or remove the pod's IPv6 address
ST005 family not captured: inbound tcp, IPv6
  why      IPv4 is captured, IPv6 is not
  witness  sidetrack explain in tcp [2001:db8::2]:80 --in-interface eth0
           -> reaches the pod untouched
  remedy   apply with --dual-stack, or remove the pod's IPv6 address
)");
}

TEST(Findings, OfTheProxysOwnTrafficThatComesBack) {
  EXPECT_EQ("\n" + of_live("-i * -b * -d 15090,15021,15020 --ip-families ipv4",
                           {"nat -A OUTPUT -m owner --gid-owner 1337 -j REDIRECT --to-ports 15001"}),
            R"(
# -i * -b * -d 15090,15021,15020 --ip-families ipv4; nat -A OUTPUT -m owner --gid-owner 1337 -j REDIRECT --to-ports 15001
ST003 loop: outbound tcp of the proxy, IPv4
  why      comes back to the proxy, which would send it again; what decides: nat: -A OUTPUT -m owner --gid-owner 1337 -j REDIRECT --to-ports 15001
  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 1337 --gid 1337
           -> 127.0.0.1:15001 (Envoy outbound)
  remedy   leave out what the proxy sends: -u and -g are its uid and gid
ST003 loop: outbound udp of the proxy, IPv4
  why      comes back to the proxy, which would send it again; what decides: nat: -A OUTPUT -m owner --gid-owner 1337 -j REDIRECT --to-ports 15001
  witness  sidetrack explain out udp 198.51.100.1:80 --uid 1337 --gid 1337
           -> 127.0.0.1:15001 (Envoy outbound)
  remedy   leave out what the proxy sends: -u and -g are its uid and gid
ST003 loop: tcp of the proxy to this pod itself, IPv4
  why      comes back to the outbound listener, which would send it again; what decides: nat: -A OUTPUT -m owner --gid-owner 1337 -j REDIRECT --to-ports 15001
  witness  sidetrack explain lo tcp 127.0.0.1:80 --uid 1337 --gid 1337
           -> 127.0.0.1:15001 (Envoy outbound)
  remedy   leave out what the proxy sends: -u and -g are its uid and gid
ST005 family not captured: outbound tcp, IPv6
  why      IPv4 is captured, IPv6 is not
  witness  sidetrack explain out tcp [2001:db8:ffff::1]:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   apply with --dual-stack, or remove the pod's IPv6 address
ST005 family not captured: inbound tcp, IPv6
  why      IPv4 is captured, IPv6 is not
  witness  sidetrack explain in tcp [2001:db8::2]:80 --in-interface eth0
           -> reaches the pod untouched
  remedy   apply with --dual-stack, or remove the pod's IPv6 address
)");
}

TEST(Findings, OfLivePortsOfTheProxy) {
  EXPECT_EQ("\n" + of_live("-i * -b * -d 15020 --ip-families ipv4", {}), R"(
# -i * -b * -d 15020 --ip-families ipv4
ST005 family not captured: outbound tcp, IPv6
  why      IPv4 is captured, IPv6 is not
  witness  sidetrack explain out tcp [2001:db8:ffff::1]:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   apply with --dual-stack, or remove the pod's IPv6 address
ST005 family not captured: inbound tcp, IPv6
  why      IPv4 is captured, IPv6 is not
  witness  sidetrack explain in tcp [2001:db8::2]:80 --in-interface eth0
           -> reaches the pod untouched
  remedy   apply with --dual-stack, or remove the pod's IPv6 address
ST006 port of the proxy captured: inbound tcp to port 15021 (readiness)
  why      the proxy answers there itself, without its inbound listener; what decides: nat: -A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006
  witness  sidetrack explain in tcp 192.0.2.2:15021 --in-interface eth0
           -> 192.0.2.2:15006 (Envoy inbound)
  remedy   add 15021 to -d; where -b is a list, leave 15021 out of that
ST006 port of the proxy captured: inbound tcp to port 15090 (Envoy Prometheus telemetry)
  why      the proxy answers there itself, without its inbound listener; what decides: nat: -A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006
  witness  sidetrack explain in tcp 192.0.2.2:15090 --in-interface eth0
           -> 192.0.2.2:15006 (Envoy inbound)
  remedy   add 15090 to -d; where -b is a list, leave 15090 out of that
)");
}

TEST(Findings, OfDnsThatOthersLeaveAlone) {
  EXPECT_EQ("\n" + of_live("-b 15021,80 --redirect-dns --capture-all-dns --ip-families ipv4",
                           {"nat -A OUTPUT -p udp -j ACCEPT"}),
            R"(
# -b 15021,80 --redirect-dns --capture-all-dns --ip-families ipv4; nat -A OUTPUT -p udp -j ACCEPT
ST009 rules of other programs decide: outbound udp
  why      the sidecar's rules alone capture it; what decides: nat: -A OUTPUT -p udp -j ACCEPT
  witness  sidetrack explain out udp 198.51.100.1:53 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   make an exception in the rule of the other program, or leave this traffic out
ST009 rules of other programs decide: to itself: udp
  why      the sidecar's rules alone capture it; what decides: nat: -A OUTPUT -p udp -j ACCEPT
  witness  sidetrack explain lo udp 127.0.0.7:53 --uid 1000 --gid 1000
           -> reaches the pod untouched
  remedy   make an exception in the rule of the other program, or leave this traffic out
ST005 family not captured: outbound tcp, IPv6
  why      IPv4 is captured, IPv6 is not
  witness  sidetrack explain out tcp [2001:db8:ffff::1]:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   apply with --dual-stack, or remove the pod's IPv6 address
ST005 family not captured: inbound tcp, IPv6
  why      IPv4 is captured, IPv6 is not
  witness  sidetrack explain in tcp [2001:db8::2]:80 --in-interface eth0
           -> reaches the pod untouched
  remedy   apply with --dual-stack, or remove the pod's IPv6 address
ST006 port of the proxy captured: inbound tcp to port 15021 (readiness)
  why      the proxy answers there itself, without its inbound listener; what decides: nat: -A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006
  witness  sidetrack explain in tcp 192.0.2.2:15021 --in-interface eth0
           -> 192.0.2.2:15006 (Envoy inbound)
  remedy   add 15021 to -d; where -b is a list, leave 15021 out of that
)");
}

TEST(Findings, OfZtunnelBesideOthers) {
  EXPECT_EQ("\n" + of_live("--dataplane ambient --ip-families ipv4", {"nat -A OUTPUT -p tcp -j ACCEPT"}), R"(
# --dataplane ambient --ip-families ipv4; nat -A OUTPUT -p tcp -j ACCEPT
ST010 the proxy's own traffic is blocked or changed: tcp of ztunnel to the app from its client's address, IPv4
  why      the app's answers must come back to it, by the policy rule of their mark and the route of table 100; what decides: nat: -A OUTPUT -p tcp -j ACCEPT
  witness  sidetrack explain lo tcp 192.0.2.2:80 --from 203.0.113.1 --uid 1000 --gid 1000 --mark 1337
           -> reaches the pod untouched; replies are lost
  remedy   'sidetrack verify --dataplane ambient' names what is missing or in the way
ST009 rules of other programs decide: outbound tcp
  why      the sidecar's rules alone capture it; what decides: nat: -A OUTPUT -p tcp -j ACCEPT
  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   make an exception in the rule of the other program, or leave this traffic out
ST005 family not captured: inbound tcp, IPv6
  why      IPv4 is captured, IPv6 is not
  witness  sidetrack explain in tcp [2001:db8::2]:80 --in-interface eth0
           -> reaches the pod untouched
  remedy   apply with --dual-stack, or remove the pod's IPv6 address
)");
}

TEST(Findings, OfZtunnelsMarkThatOthersTakeAway) {
  EXPECT_EQ("\n" + of_live("--dataplane ambient --ip-families ipv4",
                           {"mangle -A PREROUTING -p tcp -j MARK --set-xmark 0/0xffffffff"}),
            R"(
# --dataplane ambient --ip-families ipv4; mangle -A PREROUTING -p tcp -j MARK --set-xmark 0/0xffffffff
ST010 the proxy's own traffic is blocked or changed: tcp of ztunnel to the app from its client's address, IPv4
  why      the app's answers must come back to it, by the policy rule of their mark and the route of table 100; what decides: nat: -A ISTIO_OUTPUT ! -d 127.0.0.1/32 -o lo -j ACCEPT
  witness  sidetrack explain lo tcp 192.0.2.2:80 --from 203.0.113.1 --uid 1000 --gid 1000 --mark 1337
           -> reaches the pod untouched; replies are lost
  remedy   'sidetrack verify --dataplane ambient' names what is missing or in the way
ST005 family not captured: outbound tcp, IPv6
  why      IPv4 is captured, IPv6 is not
  witness  sidetrack explain out tcp [2001:db8:ffff::1]:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   apply with --dual-stack, or remove the pod's IPv6 address
ST005 family not captured: inbound tcp, IPv6
  why      IPv4 is captured, IPv6 is not
  witness  sidetrack explain in tcp [2001:db8::2]:80 --in-interface eth0
           -> reaches the pod untouched
  remedy   apply with --dual-stack, or remove the pod's IPv6 address
)");
}

TEST(Findings, OfLiveRanges) {
  EXPECT_EQ("\n" + of_live("-i 10.0.0.0/8,10.1.0.0/16 -x 10.2.0.0/16,10.2.3.0/24,11.0.0.0/8 --ip-families ipv4", {}),
            R"(
# -i 10.0.0.0/8,10.1.0.0/16 -x 10.2.0.0/16,10.2.3.0/24,11.0.0.0/8 --ip-families ipv4
ST002 value without effect: -i 10.1.0.0/16
  why      10.0.0.0/8 covers it
  witness  sidetrack explain out tcp 10.1.0.1:80 --uid 1000 --gid 1000
           -> 127.0.0.1:15001 (Envoy outbound)
  remedy   leave it out
ST002 value without effect: -x 11.0.0.0/8
  why      without it, every packet has the same outcome
  witness  sidetrack explain out tcp 11.0.0.1:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out, or change what decides before it
ST002 value without effect: -x 10.2.3.0/24
  why      10.2.0.0/16 covers it
  witness  sidetrack explain out tcp 10.2.3.1:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out
ST005 family not captured: outbound tcp, IPv6
  why      IPv4 is captured, IPv6 is not
  witness  sidetrack explain out tcp [2001:db8:ffff::1]:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   apply with --dual-stack, or remove the pod's IPv6 address
)");
}

TEST(Findings, OfLivePorts) {
  EXPECT_EQ("\n" + of_live("-i 10.0.0.0/8 -q 443 -o 443,22,443 -b 80,79-81 --ip-families ipv4", {}), R"(
# -i 10.0.0.0/8 -q 443 -o 443,22,443 -b 80,79-81 --ip-families ipv4
ST002 value without effect: -b 80
  why      79-81 covers it
  witness  sidetrack explain in tcp 192.0.2.2:80 --in-interface eth0
           -> 192.0.2.2:15006 (Envoy inbound)
  remedy   leave it out
ST001 option without effect: -q 443
  why      without it, every packet has the same outcome; -o 443 decides about the witness
  witness  sidetrack explain out tcp 198.51.100.1:443 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out
ST005 family not captured: outbound tcp, IPv6
  why      IPv4 is captured, IPv6 is not
  witness  sidetrack explain out tcp [2001:db8:ffff::1]:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   apply with --dual-stack, or remove the pod's IPv6 address
ST005 family not captured: inbound tcp, IPv6
  why      IPv4 is captured, IPv6 is not
  witness  sidetrack explain in tcp [2001:db8::2]:80 --in-interface eth0
           -> reaches the pod untouched
  remedy   apply with --dual-stack, or remove the pod's IPv6 address
)");
}

TEST(Findings, OfLiveInterfaces) {
  EXPECT_EQ("\n" + of_live("-b * -d 15000-15100,15020 -c net1,eth0 -k net2 --ip-families ipv4", {}), R"(
# -b * -d 15000-15100,15020 -c net1,eth0 -k net2 --ip-families ipv4
ST001 option without effect: -d 15000-15100,15020
  why      without it, every packet has the same outcome; -c eth0 decides about the witness
  witness  sidetrack explain in tcp 192.0.2.2:15000 --in-interface eth0
           -> reaches the pod untouched
  remedy   leave it out
ST001 option without effect: -c net1
  why      the pod has no interface of that name
  witness  sidetrack explain in tcp 192.0.2.2:80 --in-interface eth0
           -> reaches the pod untouched
  remedy   leave it out
ST001 option without effect: -c net2
  why      the pod has no interface of that name
  witness  sidetrack explain in tcp 192.0.2.2:80 --in-interface eth0
           -> reaches the pod untouched
  remedy   leave it out
)");
}

TEST(Findings, OfLiveSources) {
  EXPECT_EQ(
      "\n" +
          of_live("-i * -b * -d 15090,15021,15020 --exclude-inbound-ranges 10.0.0.0/8,10.1.0.0/16 --ip-families ipv4",
                  {}),
      R"(
# -i * -b * -d 15090,15021,15020 --exclude-inbound-ranges 10.0.0.0/8,10.1.0.0/16 --ip-families ipv4
ST002 value without effect: --exclude-inbound-ranges 10.1.0.0/16
  why      10.0.0.0/8 covers it
  witness  sidetrack explain in tcp 192.0.2.2:80 --from 10.1.0.2 --in-interface eth0
           -> reaches the pod untouched
  remedy   leave it out
ST005 family not captured: outbound tcp, IPv6
  why      IPv4 is captured, IPv6 is not
  witness  sidetrack explain out tcp [2001:db8:ffff::1]:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   apply with --dual-stack, or remove the pod's IPv6 address
ST005 family not captured: inbound tcp, IPv6
  why      IPv4 is captured, IPv6 is not
  witness  sidetrack explain in tcp [2001:db8::2]:80 --in-interface eth0
           -> reaches the pod untouched
  remedy   apply with --dual-stack, or remove the pod's IPv6 address
)");
}

TEST(Findings, OfLiveOwners) {
  EXPECT_EQ("\n" + of_live("-i * --exclude-uids 5,1-9,1337 --exclude-gids 7,6-7 --ip-families ipv4", {}), R"(
# -i * --exclude-uids 5,1-9,1337 --exclude-gids 7,6-7 --ip-families ipv4
ST002 value without effect: --exclude-uids 1337
  why      without it, every packet has the same outcome; -u 1337 decides about the witness
  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 1337 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out, or change what decides before it
ST002 value without effect: --exclude-uids 5
  why      1-9 covers it
  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 5 --gid 1000
           -> leaves untouched, by eth0
  remedy   leave it out
ST002 value without effect: --exclude-gids 7
  why      6-7 covers it
  witness  sidetrack explain out tcp 198.51.100.1:80 --uid 1000 --gid 7
           -> leaves untouched, by eth0
  remedy   leave it out
ST005 family not captured: outbound tcp, IPv6
  why      IPv4 is captured, IPv6 is not
  witness  sidetrack explain out tcp [2001:db8:ffff::1]:80 --uid 1000 --gid 1000
           -> leaves untouched, by eth0
  remedy   apply with --dual-stack, or remove the pod's IPv6 address
)");
}

}  // namespace
}  // namespace sidetrack::lint
