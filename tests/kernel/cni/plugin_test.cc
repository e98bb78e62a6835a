// SPDX-License-Identifier: GPL-2.0-or-later
// The CNI plugin, called as a runtime calls it, by the CNI specification 1.1.
#include "node/plugin.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <linux/netlink.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "support/cni_node.h"
#include "support/kernel_test.h"
#include "support/listing.h"
#include "support/refused_call.h"
#include "support/trace.h"
#include "support/traffic.h"
#include "support/user_namespace.h"
#include "unit/read_file.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Pair;
using ::testing::StartsWith;

using CniPlugin = KernelTest;

std::string backend_key(const char* backend) { return fmt::format(R"("backend": "{}", "dualStack": true)", backend); }

// ---- In every backend.

class CniBackend : public KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  [[nodiscard]] CniCall call(const std::string& verb) const {
    return {.verb = verb, .pod = &pod, .keys = backend_key(GetParam())};
  }

  CniNode node;
  Namespace pod = pod_of_cni();
};

TEST_P(CniBackend, AddProgramsWhatThePodAsksFor) {
  const Words options{"--backend", GetParam(), "--dual-stack",     "-u", "1337", "-g", "1337", "-i", "*", "-b",
                      "*",         "-d",       "15020,15021,15090"};
  const Namespace other = pod_of_cni();
  other.must(Words{program_under_test(), "apply"} + options);

  node.must(call("ADD"));
  EXPECT_EQ(state(pod), state(other));
  pod.must(Words{program_under_test(), "verify"} + options);
  node.must(call("CHECK"));
  const auto records = node.records();
  ASSERT_THAT(records, ElementsAre(Key("c1")));
  const auto record = nlohmann::json::parse(records.at("c1"));
  EXPECT_EQ(record["container_id"], "c1");
  EXPECT_EQ(record["interface"], "eth0");
  EXPECT_EQ(record["namespace"], "default");
  EXPECT_EQ(record["pod"], "web-1");
  EXPECT_EQ(record["network"], "pods");
  // What is recorded makes the same rules.
  Words recorded{program_under_test(), "verify"};
  for (const auto& option : record["options"]) recorded.push_back(option.get<std::string>());
  pod.must(recorded);

  const std::string before = trace(pod);
  node.must(call("ADD"));
  EXPECT_EQ(trace(pod), before);
}

// Where the plugin is installed with --dataplane ambient.
TEST_P(CniBackend, AddProgramsAmbientPods) {
  const std::string keys = backend_key(GetParam()) + R"(, "dataplane": "ambient", "dns": true)";
  const CniCall add{
      .verb = "ADD", .pod = &pod, .annotations = {{"ambient.istio.io/bypass-inbound-capture", "true"}}, .keys = keys};
  CniCall check = add;
  check.verb = "CHECK";
  CniCall del = add;
  del.verb = "DEL";
  const Words options{"--backend", GetParam(), "--dual-stack", "--dataplane", "ambient", "--redirect-dns", "--ingress"};
  const Namespace other = pod_of_cni();
  other.must(Words{program_under_test(), "apply"} + options);

  node.must(add);
  EXPECT_EQ(state(pod), state(other));
  pod.must(Words{program_under_test(), "verify"} + options);
  node.must(check);
  const std::string before = trace(pod);
  node.must(add);
  EXPECT_EQ(trace(pod), before);
  node.must(del);
  EXPECT_THAT(listing(pod), ::testing::Not(HasSubstr("ISTIO")));
  EXPECT_EQ(pod.must({"ip", "rule", "list", "table", "100"}), "");

  // One with a sidecar, and one that is to be left alone.
  node.must({.verb = "ADD", .pod = &pod, .keys = keys});
  EXPECT_THAT(listing(pod), AllOf(HasSubstr("ISTIO_IN_REDIRECT"), ::testing::Not(HasSubstr("ISTIO_PRERT"))));
  node.must({.verb = "DEL", .pod = &pod, .keys = keys});
  node.must({.verb = "ADD", .pod = &pod, .annotations = {{"istio.io/dataplane-mode", "none"}}, .keys = keys});
  EXPECT_THAT(listing(pod), ::testing::Not(HasSubstr("ISTIO")));
}

// What the pod says counts more than what the conflist says of all.
TEST_P(CniBackend, AddProgramsWhatTheProxyConfigAsksFor) {
  const std::string keys = backend_key(GetParam()) + R"(, "dns": false, "dropInvalid": true)";
  const CniCall add{.verb = "ADD",
                    .pod = &pod,
                    .annotations = {{"sidecar.istio.io/status", R"({"initContainers":["istio-validation"]})"},
                                    {"sidetrack/proxy-uid", "1000670001"},
                                    {"proxy.istio.io/config",
                                     "interceptionMode: TPROXY\nproxyMetadata:\n  ISTIO_META_DNS_CAPTURE: \"true\"\n"
                                     "  INVALID_DROP: \"false\"\n  ISTIO_DUAL_STACK: \"false\"\n"}},
                    .keys = keys};
  const Words options{"--backend",
                      GetParam(),
                      "-u",
                      "1000670001",
                      "-m",
                      "TPROXY",
                      "-i",
                      "*",
                      "-b",
                      "*",
                      "-d",
                      "15020,15021,15090",
                      "--redirect-dns",
                      "--capture-all-dns"};
  const Namespace other = pod_of_cni();
  other.must(Words{program_under_test(), "apply"} + options);

  node.must(add);
  EXPECT_EQ(state(pod), state(other));
  CniCall again = add;
  again.verb = "CHECK";
  node.must(again);
  again.verb = "DEL";
  node.must(again);
  EXPECT_THAT(listing(pod), ::testing::Not(HasSubstr("ISTIO")));
}

TEST_P(CniBackend, CheckNamesTheRuleThatDiffers) {
  node.must(call("ADD"));
  if (std::string_view(GetParam()) == "nftables") {
    pod.must({"nft", "flush", "chain", "inet", "sidetrack", "nat-ISTIO_REDIRECT"});
  } else {
    pod.must({std::string(GetParam()) == "iptables-nft" ? "iptables-nft" : "iptables-legacy", "-t", "nat", "-F",
              "ISTIO_REDIRECT"});
  }
  const std::string before = listing(pod);
  const Output checked = node.call(call("CHECK"));
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_EQ(code_of(checked), 106);
  EXPECT_THAT(message_of(checked), HasSubstr("missing: -A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001"));
  EXPECT_THAT(message_of(checked), HasSubstr("'sidetrack pods --repair' on the node installs its rules again"));
  EXPECT_EQ(listing(pod), before);
  node.must(call("ADD"));
  node.must(call("CHECK"));
  // What is not ours cannot be repaired.
  pod.must({"nft", "add table ip others; add chain ip others c { type filter hook output priority 0; policy drop; }"});
  const Output of_others = node.call(call("CHECK"));
  EXPECT_EQ(code_of(of_others), 106);
  EXPECT_THAT(message_of(of_others), AllOf(HasSubstr("the policy of ip others c"), HasSubstr("'sidetrack show'"),
                                           ::testing::Not(HasSubstr("--repair"))));
}

TEST_P(CniBackend, DelRemovesAllAgainAndAgain) {
  node.must(call("ADD"));
  node.must(call("DEL"));
  const auto clean = state(pod);
  EXPECT_THAT(node.records(), IsEmpty());
  EXPECT_THAT(listing(pod), ::testing::Not(HasSubstr("ISTIO")));
  node.must(call("DEL"));
  EXPECT_EQ(state(pod), clean);
  const Output checked = node.call(call("CHECK"));
  EXPECT_EQ(code_of(checked), 106);
  EXPECT_THAT(message_of(checked), HasSubstr("c1: ADD recorded nothing"));
}

// What somebody puts into our chains afterwards is seen where it keeps traffic from the proxy, and never keeps a pod
// from ending.
TEST_P(CniBackend, RulesOfOthersInOurChainsAreSeenAndDoNotKeepAPodFromEnding) {
  const bool native = std::string_view(GetParam()) == "nftables";
  pod.must({"ip", "link", "add", "eth0", "up", "type", "veth", "peer", "name", "outside"});
  pod.must({"ip", "address", "add", "10.1.0.3/24", "dev", "eth0"});
  pod.must({"ip", "link", "set", "outside", "up"});
  pod.must({"ip", "route", "add", "default", "via", "10.1.0.1"});
  for (const char* edit : {"insert rule inet sidetrack nat-ISTIO_INBOUND return",
                           "insert rule inet sidetrack nat-OUTPUT accept", "add chain inet sidetrack mine"}) {
    node.must(call("ADD"));
    if (native) {
      pod.must({"nft", edit});
    } else {
      pod.must({std::string(GetParam()) == "iptables-nft" ? "iptables-nft" : "iptables-legacy", "-t", "nat", "-I",
                "ISTIO_INBOUND", "-j", "RETURN"});
    }
    const bool harmless = native && std::string_view(edit).starts_with("add chain");
    const Output checked = node.call(call("CHECK"));
    EXPECT_EQ(checked.exit_code, harmless ? 0 : 1) << edit << checked.out;
    if (!harmless) {
      EXPECT_THAT(message_of(checked), HasSubstr("must not change keeps traffic from the proxy")) << edit;
    }
    node.must(call("DEL"));
    if (native) {  // what leads to our chains keeps them, and the record
      EXPECT_THAT(node.records(), ElementsAre(Key("c1"))) << edit;
      pod.must({"nft", "flush ruleset"});
      node.must(call("DEL"));
    }
    EXPECT_THAT(node.records(), IsEmpty());
  }
}

// Its rules go with its network namespace, whatever its processes do until then.
TEST_P(CniBackend, WhatAPodHoldsDoesNotKeepItFromEnding) {
  const std::string backend = GetParam();
  const std::string table = backend == "nftables" ? "inet sidetrack" : "ip nat";
  const std::string chain = backend == "nftables" ? "nat-ISTIO_INBOUND" : "ISTIO_INBOUND";
  const auto del = [&] {
    const auto start = std::chrono::steady_clock::now();
    node.must(call("DEL"));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
  };
  if (backend != "iptables-legacy") {
    for (const char* verdict : {"jump", "goto"}) {
      node.must(call("ADD"));
      pod.must({"nft", fmt::format("add map {} m {{ type ipv4_addr : verdict; elements = {{ 1.1.1.1 : {} {} }}; }}",
                                   table, verdict, chain)});
      del();
      pod.must({"nft", "flush ruleset"});
      del();
      EXPECT_THAT(node.records(), IsEmpty());
    }
  }
  node.must(call("ADD"));
  ASSERT_EQ(flock(pod.fd(), LOCK_EX), 0);  // as any process of the pod can
  del();
  // The rules stay, and the record, by which another DEL knows of them.
  EXPECT_THAT(node.records(), ElementsAre(Key("c1")));
  ASSERT_EQ(flock(pod.fd(), LOCK_UN), 0);
  node.must(call("CHECK"));
  del();
  EXPECT_THAT(listing(pod), ::testing::Not(HasSubstr("ISTIO")));
  EXPECT_THAT(node.records(), IsEmpty());
}

// A runtime that gave up waiting for ADD calls DEL while it goes on.
TEST_P(CniBackend, AnAddThatWaitsForTheLockIsNotForgottenByADel) {
  ASSERT_EQ(flock(pod.fd(), LOCK_EX), 0);
  const std::string calls = node.folder() + "/calls";
  ASSERT_EQ(mkfifo(calls.c_str(), 0600), 0);
  auto add = std::async(std::launch::async, [&] {
    return node.call(call("ADD"), {"strace", "-e", "trace=flock", "-o", calls});
  });
  std::ifstream made(calls);
  for (std::string line; line.find("EAGAIN") == std::string::npos;) ASSERT_TRUE(std::getline(made, line));
  node.must(call("DEL"));
  ASSERT_EQ(flock(pod.fd(), LOCK_UN), 0);
  EXPECT_EQ(add.get().exit_code, 0);
  node.must(call("CHECK"));
  node.must(call("DEL"));
  EXPECT_THAT(listing(pod), ::testing::Not(HasSubstr("ISTIO")));
}

TEST_P(CniBackend, APodThatIsNoLongerToBeInterceptedIsLeftAlone) {
  node.must(call("ADD"));
  CniCall now = call("ADD");
  now.annotations.emplace("sidecar.istio.io/inject", "false");
  node.must(now);
  EXPECT_THAT(listing(pod), ::testing::Not(HasSubstr("ISTIO")));
  EXPECT_THAT(node.records(), IsEmpty());
}

// A pod with `hostUsers: false`: its ids are others outside.
TEST_P(CniBackend, EntersTheUserNamespaceOfThePod) {
  const UserNamespace users;
  const Identity proxy = UserNamespace::outside(1337);
  const Pod inside({.proxy = proxy}, users.network());
  CniCall asked = call("ADD");
  asked.pod = &inside.ns();
  node.must(asked);
  asked.verb = "CHECK";
  node.must(asked);

  for (const Family family : {Family::ipv4, Family::ipv6}) {
    const Addresses& at = addresses(family);
    const auto connect = [&](const Actor& actor, const Endpoint& to) {
      return inside.connect(actor, {.to = to, .protocol = Protocol::tcp, .from = {}});
    };
    const Endpoint service(at.service, 80);
    const Endpoint inbound(at.pod, 8080);
    EXPECT_EQ(connect(from_outside, inbound), landed(Role::proxy_inbound, original(inbound)));
    EXPECT_EQ(connect({Place::pod, UserNamespace::outside(1000)}, service),
              landed(Role::proxy_outbound, original(service)));
    EXPECT_EQ(connect({Place::pod, proxy}, service), landed(Role::outside, local(service)));
  }
  asked.verb = "DEL";
  node.must(asked);
  EXPECT_THAT(listing(inside.ns()), ::testing::Not(HasSubstr("ISTIO")));
  EXPECT_THAT(node.records(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(, CniBackend, ::testing::ValuesIn(backends), backend_name);

// ---- Who is intercepted.

TEST_F(CniPlugin, LeavesOthersAlone) {
  const CniNode node;
  const Namespace pod = pod_of_cni();
  const std::string before = trace(pod);
  node.must({.pod = &pod, .annotations = {}});
  node.must({.pod = &pod, .annotations = {{"sidecar.istio.io/status", R"({"initContainers":["istio-init"]})"}}});
  const std::string without_init = R"({"initContainers":null,"containers":["istio-proxy"]})";
  for (const char* name : {"gateway", "grpc-agent", "waypoint"}) {
    node.must(
        {.pod = &pod, .annotations = {{"sidecar.istio.io/status", without_init}, {"inject.istio.io/templates", name}}});
  }
  node.must({.pod = &pod,
             .annotations = {{"sidecar.istio.io/status", without_init},
                             {"proxy.istio.io/config", "proxyMetadata: {DISABLE_ENVOY: \"true\"}"}}});
  node.must({.pod = &pod, .keys = R"("excludeNamespaces": ["default"])"});
  node.must({.verb = "CHECK", .pod = &pod, .annotations = {}});
  node.must({.verb = "DEL", .pod = &pod, .annotations = {}});
  EXPECT_EQ(trace(pod), before);
  EXPECT_THAT(node.records(), IsEmpty());
}

// strace makes another call of one: a call that the sandbox does not allow.
TEST_F(CniPlugin, ACallThatTheSandboxRefusesIsAnError) {
  const CniNode node;
  const Namespace pod = pod_of_cni();
  const Words refused{"strace", "-qq", "-o", "/dev/null", "-e", "inject=recvfrom:error=EPERM:syscall=getpgrp:when=10+"};
  const CniCall asked{.pod = &pod};
  const Output output = node.call(asked, refused);
  EXPECT_EQ(output.exit_code, 1);
  EXPECT_THAT(output.out, HasSubstr("the sandbox refused system call")) << output.err;
  EXPECT_THAT(output.out, Not(HasSubstr("CAP_SYS_ADMIN")));
  node.must({.verb = "DEL", .pod = &pod});
  node.must({.pod = &pod, .keys = R"("noSandbox": true)"});
  node.must({.verb = "CHECK", .pod = &pod, .keys = R"("noSandbox": true)"});
  node.must({.verb = "DEL", .pod = &pod});
}

// Byte by byte: numbers that no parser can hold, and keys that are there twice.
TEST_F(CniPlugin, HandsOnTheResultBeforeAsItWasWritten) {
  const CniNode node;
  const Namespace pod = pod_of_cni();
  const std::string result = R"({"cniVersion":"1.1.0","n": [123456789012345678901234567890, -0,1e-400 , 0.10],
    "a": {"k":1,"k":2}, "t":"\u00e9\/"})";
  EXPECT_EQ(node.call({.pod = &pod, .keys = fmt::format(R"("prevResult":  {} )", result)}).out, result + "\n");
}

// A runtime may take "capabilities" out of what it passes on.
TEST_F(CniPlugin, AnnotationsAreTheProofThatTheyArePassed) {
  const CniNode node;
  const Namespace pod = pod_of_cni();
  node.must({.pod = &pod, .capabilities = ""});
}

TEST_F(CniPlugin, TouchesNothingThatIsNotUnderstood) {
  const CniNode node;
  const Namespace pod = pod_of_cni();
  const std::string before = trace(pod);
  const Output annotation = node.call({.pod = &pod,
                                       .annotations = {{"sidecar.istio.io/status", "{}"},
                                                       {"traffic.sidecar.istio.io/includeInboundPorts", "80,http"}}});
  EXPECT_EQ(code_of(annotation), 102);
  EXPECT_THAT(message_of(annotation),
              HasSubstr("traffic.sidecar.istio.io/includeInboundPorts: 'http': expected a port"));
  for (const auto& [name, value, expected] : std::vector<std::array<const char*, 3>>{
           {"sidetrack/bypass-cgroup", "/nope", "sidetrack/bypass-cgroup: '/nope': "},
           {"sidetrack/capture-udp", "443",
            "sidetrack/capture-udp: '443': expected sidecar.istio.io/interceptionMode"}}) {
    const Output refused = node.call({.pod = &pod, .annotations = {{"sidecar.istio.io/status", "{}"}, {name, value}}});
    EXPECT_EQ(code_of(refused), 102);
    EXPECT_THAT(message_of(refused), HasSubstr(expected));
    EXPECT_THAT(refused.out, ::testing::Not(HasSubstr("--")));
  }
  const Output ambient =
      node.call({.pod = &pod, .annotations = {{"sidetrack/exclude-uids", "101"}}, .keys = R"("dataplane": "ambient")"});
  EXPECT_EQ(code_of(ambient), 102);
  EXPECT_THAT(message_of(ambient), HasSubstr("sidetrack/exclude-uids: '101': not for an ambient pod"));
  const Output key = node.call({.pod = &pod, .keys = R"("dualstack": true)"});
  EXPECT_EQ(code_of(key), 7);
  EXPECT_THAT(message_of(key),
              AllOf(HasSubstr("dualstack: unknown key: expected one of"), HasSubstr("mean dualStack?")));
  EXPECT_EQ(trace(pod), before);
  EXPECT_THAT(node.records(), IsEmpty());
}

// What a pod asks for must not cost its node more than a moment.
TEST_F(CniPlugin, RefusesMoreRulesThanAPodMayHave) {
  const CniNode node;
  const Namespace pod = pod_of_cni();
  const std::string before = trace(pod);
  const auto numbered = [](const char* format, int count) {
    std::string list;
    for (int i = 0; i < count; ++i) list += (i == 0 ? "" : ",") + fmt::format(fmt::runtime(format), i);
    return list;
  };
  const std::map<std::string, std::string> asking[] = {
      {{"istio.io/reroute-virtual-interfaces", numbered("e{}", 3'000)},
       {"traffic.sidecar.istio.io/includeOutboundIPRanges", numbered("10.0.0.{0}/32,10.1.0.{0}/32", 200)}},
      {{"sidetrack/proxy-uid", numbered("{}", 30'000)}}};
  for (auto annotations : asking) {
    annotations["sidecar.istio.io/status"] = "{}";
    const Output output = node.call({.pod = &pod, .annotations = annotations});
    EXPECT_EQ(code_of(output), 102);
    EXPECT_THAT(message_of(output), HasSubstr("more than 16384 rules are asked for"));
  }
  EXPECT_EQ(trace(pod), before);
  EXPECT_THAT(node.records(), IsEmpty());
}

TEST_F(CniPlugin, FailsIfThePodHasNoAddressYet) {
  const CniNode node;
  const Namespace pod;
  const Output output = node.call({.pod = &pod});
  EXPECT_EQ(output.exit_code, 1);
  EXPECT_EQ(code_of(output), 101);
  EXPECT_THAT(message_of(output), HasSubstr("no interface has an address"));
}

TEST_F(CniPlugin, NeverProgramsItsOwnNetworkNamespace) {
  const CniNode node;
  set_up(node.ns());
  const std::string before = trace(node.ns());
  for (const char* verb : {"ADD", "CHECK"}) {
    const Output output = node.call({.verb = verb, .netns = "/proc/self/ns/net"});
    if (std::string_view(verb) == "CHECK") {
      EXPECT_EQ(code_of(output), 106);  // nothing is recorded
      continue;
    }
    EXPECT_EQ(code_of(output), 4);
    EXPECT_THAT(message_of(output), HasSubstr("is the network namespace of the plugin itself"));
  }
  EXPECT_EQ(trace(node.ns()), before);
  EXPECT_THAT(node.records(), IsEmpty());
}

// A process 1 with the network namespace of the node, and the plugin in another one.
TEST_F(CniPlugin, NeverProgramsTheNetworkNamespaceOfProcess1) {
  const CniNode node;
  set_up(node.ns());
  const Words apart{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", "unshare --net \"$@\"",
                    "sh"};
  const std::string before = trace(node.ns());
  const std::string log = node.folder() + "/log";
  const std::string keys = fmt::format(R"("logFile": "{}")", log);
  const Output added = node.call({.netns = "/proc/1/ns/net", .keys = keys}, apart);
  EXPECT_EQ(code_of(added), 4);
  EXPECT_THAT(message_of(added), HasSubstr("CNI_NETNS: '/proc/1/ns/net' is the network namespace of process 1, the "
                                           "node's: expected that of a pod"));
  EXPECT_THAT(node.records(), IsEmpty());

  const Namespace pod = pod_of_cni();
  node.must({.pod = &pod});
  const Output removed = node.call({.verb = "DEL", .netns = "/proc/1/ns/net", .keys = keys}, apart);
  EXPECT_EQ(removed.exit_code, 0) << removed.out;
  EXPECT_THAT(read_file(log), HasSubstr("\twarn\tDEL default/web-1 c1 eth0: CNI_NETNS is the network namespace of "
                                        "process 1, the node's: nothing is removed there\n"));
  EXPECT_THAT(node.records(), IsEmpty());
  EXPECT_EQ(trace(node.ns()), before);
  EXPECT_THAT(listing(pod), HasSubstr("ISTIO"));
}

TEST_F(CniPlugin, ARightThatIsMissingIsNoFaultOfTheVariable) {
  const CniNode node;
  const Namespace pod = pod_of_cni();
  const std::string before = trace(pod);
  const Output output = node.call({.pod = &pod}, {"setpriv", "--bounding-set=-sys_admin"});
  EXPECT_EQ(code_of(output), 104);
  EXPECT_THAT(message_of(output), AllOf(StartsWith("network namespace '"), HasSubstr("CAP_SYS_ADMIN")));
  EXPECT_EQ(trace(pod), before);
  EXPECT_THAT(node.records(), IsEmpty());
}

TEST_F(CniPlugin, SaysWhatIsNoNetworkNamespace) {
  const CniNode node;
  for (const char* path : {"/proc/self/ns/uts", "/etc/passwd", "/dev/null", "/tmp", "/nonexistent"}) {
    const Output output = node.call({.netns = path});
    EXPECT_EQ(code_of(output), 4) << path;
    EXPECT_THAT(message_of(output), AllOf(StartsWith("CNI_NETNS: "), HasSubstr(std::string("'") + path + "'")));
    node.must({.verb = "DEL", .netns = path});
    EXPECT_THAT(node.records(), IsEmpty());
  }
}

// ---- DEL

TEST_F(CniPlugin, DelNeedsNoNamespaceAndNoRightConfiguration) {
  const CniNode node;
  const Namespace pod = pod_of_cni();
  const std::string wrong = R"("uid": "wrong", "unknown": 1)";
  node.must({.pod = &pod});
  node.must({.verb = "DEL", .keys = wrong});
  node.must({.verb = "DEL", .keys = R"("args": 1, "prevResult": null)"});
  EXPECT_THAT(node.records(), IsEmpty());
  node.must({.pod = &pod});
  node.must({.verb = "DEL", .netns = "/run/netns/gone", .keys = wrong});
  EXPECT_THAT(node.records(), IsEmpty());
  node.must({.pod = &pod});
  node.must({.verb = "DEL", .netns = "/etc/hostname"});  // what is left where a namespace was bound
  EXPECT_THAT(node.records(), IsEmpty());
}

// The path of a pod that has ended leads to another pod by now.
TEST_F(CniPlugin, DelRemovesNothingFromAnotherPodAtTheSamePath) {
  const CniNode node;
  const Namespace pod = pod_of_cni();
  const Namespace other = pod_of_cni();
  node.must({.pod = &pod});
  node.must({.container = "c2", .pod = &other});
  const auto before = state(other);
  const Output checked = node.call({.verb = "CHECK", .pod = &other});
  EXPECT_EQ(code_of(checked), 106);
  EXPECT_THAT(message_of(checked), HasSubstr("c1: ADD installed its rules in another network namespace"));
  node.must({.verb = "DEL", .pod = &other});
  EXPECT_EQ(state(other), before);
  EXPECT_THAT(node.records(), ElementsAre(Key("c2")));
}

// A record that cannot be read says that something was installed.
TEST_F(CniPlugin, DelCleansWhatABrokenRecordStandsFor) {
  const CniNode node;
  const Namespace pod = pod_of_cni();
  node.must({.pod = &pod});
  std::ofstream(node.folder() + "/run/sidetrack/pods/c1") << "broken";
  const Output checked = node.call({.verb = "CHECK", .pod = &pod});
  EXPECT_EQ(code_of(checked), 101);
  EXPECT_THAT(message_of(checked), HasSubstr("/run/sidetrack/pods/c1: expected a JSON object"));
  node.must({.verb = "DEL", .pod = &pod});
  EXPECT_THAT(listing(pod), ::testing::Not(HasSubstr("ISTIO")));
  EXPECT_THAT(node.records(), IsEmpty());
}

TEST_F(CniPlugin, AddSaysThatRulesStayInAnotherNetworkNamespace) {
  const CniNode node;
  const Namespace pod = pod_of_cni();
  const Namespace other = pod_of_cni();
  const std::string log = node.folder() + "/log";
  const std::string keys = fmt::format(R"("logFile": "{}")", log);
  const char* sentence = "\twarn\tADD default/web-1 c1 eth0: ADD was called before for another network namespace";
  for (int again = 0; again < 2; ++again) node.must({.pod = &pod, .keys = keys});
  EXPECT_THAT(read_file(log), ::testing::Not(HasSubstr(sentence)));
  node.must({.pod = &other, .keys = keys});
  EXPECT_THAT(read_file(log), HasSubstr(sentence));
}

TEST_F(CniPlugin, AddReplacesABrokenRecordAndSaysSo) {
  const CniNode node;
  const Namespace pod = pod_of_cni();
  node.must({.pod = &pod});
  const auto good = node.records();
  const std::string path = node.folder() + "/run/sidetrack/pods/c1";
  const std::string log = node.folder() + "/log";
  std::ofstream(path) << "broken";
  node.must({.pod = &pod, .keys = fmt::format(R"("logFile": "{}")", log)});
  EXPECT_THAT(read_file(log), HasSubstr("\twarn\tADD default/web-1 c1 eth0: cannot read the record "
                                        "/run/sidetrack/pods/c1: expected a JSON object\n"));
  EXPECT_EQ(node.records(), good);
}

// Its mode lets nobody but its owner look into it, who is not root: there may be rules.
TEST_F(CniPlugin, DelKeepsTheRecordIfItCannotLookAtTheNetworkNamespace) {
  const CniNode node;
  const Namespace pod = pod_of_cni();
  node.must({.pod = &pod});
  const std::string folder = node.folder() + "/netns";
  std::filesystem::create_directory(folder);
  ASSERT_EQ(chown(folder.c_str(), 1000, 1000), 0);
  ASSERT_EQ(chmod(folder.c_str(), 0700), 0);
  const Output output =
      node.call({.verb = "DEL", .netns = folder + "/c1"}, {"setpriv", "--bounding-set=-dac_override,-dac_read_search"});
  EXPECT_EQ(code_of(output), 104);
  EXPECT_THAT(message_of(output), HasSubstr("cannot look at " + folder + "/c1: Permission denied (EACCES)"));
  EXPECT_THAT(node.records(), ElementsAre(Key("c1")));
}

// The rules are the container's: they do not go with an attachment that came later.
TEST_F(CniPlugin, RulesGoWithTheFirstAttachment) {
  const CniNode node;
  const Namespace pod = pod_of_cni();
  node.must({.pod = &pod});
  node.must({.pod = &pod, .interface = "net1"});
  node.must({.verb = "DEL", .pod = &pod, .interface = "net1"});
  node.must({.verb = "CHECK", .pod = &pod});
  node.must({.verb = "DEL", .pod = &pod});
  EXPECT_THAT(listing(pod), ::testing::Not(HasSubstr("ISTIO")));
}

// ---- GC

TEST_F(CniPlugin, GcRemovesTheRecordsOfAttachmentsThatAreNotValid) {
  const CniNode node;
  const Namespace pod = pod_of_cni();
  for (const char* container : {"c1", "c2", "c3"}) node.must({.container = container, .pod = &pod});
  std::ofstream(node.folder() + "/run/sidetrack/pods/.c4") << "half a record";
  // Another network's records are not this call's.
  const std::string path = node.folder() + "/run/sidetrack/pods/c3";
  auto other = nlohmann::json::parse(node.records().at("c3"));
  other["network"] = "others";
  std::ofstream(path) << other;

  const Output without = node.call({.verb = "GC"});
  EXPECT_EQ(code_of(without), 7);
  EXPECT_THAT(message_of(without), HasSubstr("cni.dev/valid-attachments: missing"));
  node.must({.verb = "GC", .keys = R"("cni.dev/valid-attachments": [{"containerID": "c1", "ifname": "eth0"},
                                                      {"containerID": "c2", "ifname": "eth9"}])"});
  EXPECT_THAT(node.records(), ElementsAre(Key("c1"), Key("c3")));
  const std::string log = node.folder() + "/log";
  node.must({.verb = "GC", .keys = fmt::format(R"("logFile": "{}", "cni.dev/valid-attachments": [])", log)});
  EXPECT_THAT(read_file(log), HasSubstr("c1 eth0: stale attachment; record removed"));
  EXPECT_THAT(node.records(), ElementsAre(Key("c3")));
  for (const char* attachments : {R"("cni.dev/valid-attachments": null)", R"("cni.dev/attachments": [])"}) {
    node.must({.pod = &pod});
    node.must({.verb = "GC", .keys = attachments});  // null is an empty list of Go's, the other key libcni 1.2.0's
    EXPECT_THAT(node.records(), ElementsAre(Key("c3"))) << attachments;
  }
}

TEST_F(CniPlugin, ARecordThatAddCannotHaveWrittenIsRefused) {
  const CniNode node;
  const Namespace pod = pod_of_cni();
  node.must({.pod = &pod});
  const auto record = nlohmann::json::parse(node.records().at("c1"));
  for (const char* option : {"--istio-local-exclude-ports=@/etc/shadow", "--help", "-d=1"}) {
    auto changed = record;
    changed["options"].push_back(option);
    std::ofstream(node.folder() + "/run/sidetrack/pods/c1") << changed;
    EXPECT_THAT(message_of(node.call({.verb = "CHECK", .pod = &pod})),
                HasSubstr(fmt::format("unknown option '{}': ADD does not write it", option)));
  }
  auto changed = record;
  changed["netns"] = "a";
  std::ofstream(node.folder() + "/run/sidetrack/pods/c1") << changed;
  EXPECT_THAT(message_of(node.call({.verb = "CHECK", .pod = &pod})), HasSubstr("its \"netns\" is 'a'"));
}

// ---- STATUS

TEST_F(CniPlugin, StatusIsGoodWhereAddWouldSucceed) {
  const CniNode node;
  const std::string before = trace(node.ns());
  node.must({.verb = "STATUS"});
  EXPECT_EQ(trace(node.ns()), before);
}

TEST_F(CniPlugin, StatusSaysWhatTheKernelLacks) {
  const CniNode node;
  const Output output = node.call({.verb = "STATUS"}, {}, {"LD_PRELOAD=" SIDETRACK_WITHOUT, "WITHOUT=REDIRECT,redir"});
  EXPECT_EQ(code_of(output), 50);
  EXPECT_THAT(message_of(output), AllOf(HasSubstr("iptables-nft: no REDIRECT"), HasSubstr("nftables: no redir"),
                                        HasSubstr("iptables-legacy: no REDIRECT")));
  // Only the backend that is asked for counts.
  const Output one = node.call({.verb = "STATUS", .keys = R"("backend": "nftables")"}, {},
                               {"LD_PRELOAD=" SIDETRACK_WITHOUT, "WITHOUT=redir"});
  EXPECT_EQ(code_of(one), 50);
  EXPECT_EQ(node.call({.verb = "STATUS"}, {}, {"LD_PRELOAD=" SIDETRACK_WITHOUT, "WITHOUT=redir"}).exit_code, 0);
}

TEST_F(CniPlugin, StatusSaysWhyABackendCannotBeUsed) {
  const CniNode node;
  for (const char* backend : {"nftables", "iptables-nft", "auto"}) {
    Output output;
    std::thread([&] {
      refuse_call(SYS_socket, 2, NETLINK_NETFILTER, EPROTONOSUPPORT);
      output = node.call({.verb = "STATUS", .keys = fmt::format(R"("backend": "{}")", backend)});
    }).join();
    if (std::string_view(backend) == "auto") {
      EXPECT_EQ(output.exit_code, 0) << output.out;
      continue;
    }
    EXPECT_EQ(code_of(output), 50);
    EXPECT_EQ(message_of(output),
              fmt::format("no backend can hold the rules of a pod: {}: cannot open a netlink socket to nf_tables: "
                          "Protocol not supported (EPROTONOSUPPORT)\nload it on the node: modprobe nf_tables "
                          "(CONFIG_NETFILTER_NETLINK, CONFIG_NF_TABLES)",
                          backend));
  }
}

TEST_F(CniPlugin, StatusSaysWhichRightIsMissing) {
  const CniNode node;
  const Output output = node.call({.verb = "STATUS"}, {"setpriv", "--bounding-set=-sys_admin"});
  EXPECT_EQ(code_of(output), 50);
  EXPECT_THAT(message_of(output), HasSubstr("CAP_SYS_ADMIN"));
}

TEST_F(CniPlugin, StatusSaysThatNoRecordCanBeWritten) {
  const CniNode node;
  const Output full =
      node.call({.verb = "STATUS"}, {"sh", "-c",
                                     "mount -t tmpfs -o size=4k none /run && head -c 4096 /dev/zero >/run/full && "
                                     "exec \"$0\""});
  EXPECT_EQ(code_of(full), 50);
  EXPECT_THAT(message_of(full), AllOf(HasSubstr("cannot write to the directory /run/sidetrack/pods: No space left on "
                                                "device (ENOSPC)"),
                                      HasSubstr("make room on its file system")));
  const Output read_only = node.call({.verb = "STATUS"}, {"sh", "-c", "mount -o remount,bind,ro /run && exec \"$0\""});
  EXPECT_EQ(code_of(read_only), 50);
  EXPECT_THAT(message_of(read_only), AllOf(HasSubstr("cannot make the directory /run/sidetrack: Read-only file system"),
                                           HasSubstr("on a file system that can be written")));
}

TEST_F(CniPlugin, StatusSaysThatThePluginIsNotTheLast) {
  const CniNode node;
  const std::string conf_dir = node.folder() + "/net.d";
  std::filesystem::create_directory(conf_dir);
  const auto chain = [&](const char* plugins) {
    std::ofstream(conf_dir + "/10-pods.conflist")
        << R"({"cniVersion": "1.1.0", "name": "pods", "plugins": [)" << plugins << "]}";
  };
  const CniCall asked{.verb = "STATUS", .keys = fmt::format(R"("confDir": "{}")", conf_dir)};
  std::ofstream(conf_dir + "/00-other.conflist") << "broken";
  node.must(asked);  // no such chain
  chain(R"({"type": "bridge"}, {"type": "sidetrack-cni"})");
  node.must(asked);
  chain(R"({"type": "sidetrack-cni"})");
  EXPECT_THAT(message_of(node.call(asked)), HasSubstr("10-pods.conflist: sidetrack-cni is the first plugin"));
  chain(R"({"type": "bridge"}, {"type": "sidetrack-cni"}, {"type": "portmap"})");
  const Output output = node.call(asked);
  EXPECT_EQ(code_of(output), 50);
  EXPECT_THAT(message_of(output), AllOf(HasSubstr("10-pods.conflist: sidetrack-cni is not the last plugin"),
                                        HasSubstr("portmap comes after it")));
  // libcni adds those of a folder at the end.
  chain(R"({"type": "bridge"}, {"type": "sidetrack-cni"})");
  std::filesystem::create_directory(conf_dir + "/pods");
  std::ofstream(conf_dir + "/pods/10-more.conf") << R"({"type": "portmap"})";
  const Output beside = node.call(asked);
  EXPECT_EQ(code_of(beside), 50);
  EXPECT_THAT(message_of(beside), AllOf(HasSubstr("10-pods.conflist: sidetrack-cni is not the last plugin"),
                                        HasSubstr("/pods/10-more.conf comes after it"),
                                        HasSubstr("say \"loadOnlyInlinedPlugins\": true there")));
}

// ---- The rest.

TEST_F(CniPlugin, LogsToTheFileAlone) {
  const CniNode node;
  const Namespace pod = pod_of_cni();
  const std::string path = node.folder() + "/log";
  const CniCall asked{.pod = &pod, .keys = fmt::format(R"("logFile": "{}", "logLevel": "debug")", path)};
  const Output output = node.call(asked);
  EXPECT_EQ(output.exit_code, 0) << output.out;
  EXPECT_EQ(output.out, CniNode::previous_result + "\n");
  EXPECT_EQ(output.err, "");
  EXPECT_THAT(read_file(path), HasSubstr("ADD default/web-1 c1 eth0: installed "));
  const Output wrong = node.call({.pod = &pod, .keys = R"("logFile": "/nonexistent/log")"});
  EXPECT_EQ(code_of(wrong), 7);
  EXPECT_THAT(message_of(wrong), HasSubstr("logFile: cannot write to '/nonexistent/log'"));
  node.must({.verb = "DEL", .keys = R"("logFile": "/nonexistent/log")"});
}

// A syslog of the test's own, by datagrams or by a stream: what came is printed on standard error.
Output with_syslog(const CniNode& node, const CniCall& call, const std::string& kind) {
  constexpr const char* script = R"(
import socket, subprocess, sys
log = socket.socket(socket.AF_UNIX, getattr(socket, "SOCK_" + sys.argv[1]))
log.bind("/dev/log")
stream = sys.argv[1] == "STREAM"
if stream: log.listen()
status = subprocess.run(sys.argv[2:]).returncode
print(ascii((log.accept()[0] if stream else log).recv(65536)), file=sys.stderr)
sys.exit(status)
)";
  return node.call(call, {"sh", "-c", "mount -t tmpfs none /dev && exec python3 -c \"$@\"", "sh", script, kind});
}

TEST_F(CniPlugin, LogsToSyslogOfEitherKind) {
  const CniNode node;
  const Namespace pod = pod_of_cni();
  const Annotations sidecar{{"sidecar.istio.io/status", R"({"initContainers":["istio-validation"]})"}};
  for (const char* kind : {"DGRAM", "STREAM"}) {
    const Output added = with_syslog(node, {.pod = &pod, .annotations = sidecar}, kind);
    EXPECT_EQ(added.exit_code, 0) << added.out << added.err;
    EXPECT_THAT(added.err, StartsWith("b'<30>sidetrack-cni["));  // a daemon's, info
    EXPECT_THAT(added.err, HasSubstr("]: ADD default/web-1 c1 eth0: installed "));
    // In a stream nothing else tells where a message ends.
    EXPECT_THAT(added.err, EndsWith(std::string_view(kind) == "STREAM" ? "ms\\x00'\n" : "ms'\n"));
    node.must({.verb = "DEL", .pod = &pod});
    const Output failed = with_syslog(node, {.netns = "/etc/passwd", .annotations = sidecar}, kind);
    EXPECT_EQ(failed.exit_code, 1);
    EXPECT_THAT(failed.err,
                AllOf(StartsWith("b\"<27>sidetrack-cni["), HasSubstr("ADD default/web-1 c1 eth0: CNI_NETNS")));
  }
}

TEST_F(CniPlugin, AnInputThatCannotBeReadIsAnAnswerToo) {
  const CniNode node;
  const Namespace pod = pod_of_cni();
  for (const auto& [redirection, why] :
       {std::pair{"<&-", "Bad file descriptor (EBADF)"}, std::pair{"</", "Is a directory (EISDIR)"},
        std::pair{"</dev/zero", "File too large (EFBIG)"}}) {
    const Output output = node.call({.pod = &pod}, {"sh", "-c", fmt::format("exec \"$0\" {}", redirection)});
    EXPECT_EQ(output.exit_code, 1) << redirection;
    EXPECT_EQ(code_of(output), 5) << output.out;
    EXPECT_THAT(message_of(output), StartsWith(fmt::format("cannot read standard input: {}", why)));
  }
  EXPECT_THAT(node.records(), IsEmpty());
}

TEST_F(CniPlugin, ACopyIsThePluginToo) {
  const CniNode node;
  const std::string path = node.folder() + "/sidetrack-cni";
  std::filesystem::remove(path);
  std::filesystem::copy_file(program_under_test(), path);
  const Namespace pod = pod_of_cni();
  node.must({.pod = &pod});
  node.must({.verb = "CHECK", .pod = &pod});
}

// Before Linux 5.14 a network namespace has no cookie: it is told by its inode.
TEST_F(CniPlugin, RecordsTheNetworkNamespaceByWhatTheKernelKnowsItBy) {
  const CniNode node;
  const Namespace pod = pod_of_cni();
  const Namespace other = pod_of_cni();
  const auto without_cookie = [&](const CniCall& call, int error) {
    Output output;
    std::thread([&] {
      refuse_call(SYS_getsockopt, 2, SO_NETNS_COOKIE, error);
      output = node.call(call);
    }).join();
    return output;
  };
  const Output failed = without_cookie({.pod = &pod}, ENOMEM);
  EXPECT_EQ(code_of(failed), 101);
  EXPECT_THAT(message_of(failed), HasSubstr("cannot tell which network namespace this is: Cannot allocate memory"));
  EXPECT_THAT(node.records(), IsEmpty());

  EXPECT_EQ(without_cookie({.pod = &pod}, ENOPROTOOPT).exit_code, 0);
  struct stat status {};
  ASSERT_EQ(fstat(pod.fd(), &status), 0);
  EXPECT_EQ(nlohmann::json::parse(node.records().at("c1"))["network_namespace"],
            fmt::format("inode:{}:{}", status.st_dev, status.st_ino));
  EXPECT_EQ(without_cookie({.verb = "CHECK", .pod = &pod}, ENOPROTOOPT).exit_code, 0);
  EXPECT_THAT(message_of(without_cookie({.verb = "CHECK", .pod = &other}, ENOPROTOOPT)),
              HasSubstr("c1: ADD installed its rules in another network namespace"));
  EXPECT_EQ(without_cookie({.verb = "DEL", .pod = &pod}, ENOPROTOOPT).exit_code, 0);
  EXPECT_THAT(listing(pod), ::testing::Not(HasSubstr("ISTIO")));
}

// A sanitizer reserves more addresses than the limit leaves.
#ifndef SIDETRACK_SANITIZED
TEST_F(CniPlugin, MemoryThatRunsOutIsAnAnswer) {
  const CniNode node;
  const Namespace pod = pod_of_cni();
  const CniCall asked{.pod = &pod, .annotations = {{"large", std::string(1U << 20, 'x')}}};
  int failed = 0;
  bool succeeded = false;
  for (int kilobytes = 16'000; !succeeded && kilobytes < 1'000'000; kilobytes += 2'000) {
    SCOPED_TRACE(kilobytes);
    const Output output = node.call(asked, {"sh", "-c", fmt::format("ulimit -v {}; exec \"$0\"", kilobytes)});
    succeeded = output.exit_code == 0;
    if (succeeded) break;
    ++failed;
    EXPECT_EQ(output.exit_code, 1) << output.err;
    EXPECT_EQ(output.out, cni::out_of_memory);
    EXPECT_THAT(node.records(), IsEmpty());
  }
  EXPECT_GT(failed, 0);
  EXPECT_TRUE(succeeded);
}
#endif

// ADDs of many pods, 8 at a time, with DELs and GCs in between.
TEST_F(CniPlugin, ManyAtATime) {
  constexpr int pods = 200;
  constexpr int at_a_time = 8;
  const CniNode node;
  std::vector<Namespace> all;
  for (int i = 0; i < pods; ++i) all.push_back(pod_of_cni());
  const auto each = [&](const auto& act) {
    std::vector<std::future<void>> workers;
    for (int worker = 0; worker < at_a_time; ++worker) {
      workers.push_back(std::async(std::launch::async, [&, worker] {
        for (int i = worker; i < pods; i += at_a_time) act(i);
      }));
    }
    for (auto& worker : workers) worker.get();
  };
  const auto call = [&](const char* verb, int i) {
    return CniCall{.verb = verb,
                   .container = fmt::format("c{}", i),
                   .pod = &all[static_cast<std::size_t>(i)],
                   .keys = fmt::format(R"("backend": "{}")", backends[i % 3])};
  };
  each([&](int i) { node.must(call("ADD", i)); });
  EXPECT_EQ(node.records().size(), static_cast<std::size_t>(pods));
  each([&](int i) {
    node.must(call("CHECK", i));
    if (i % 2 == 0) node.must(call("DEL", i));
  });
  EXPECT_EQ(node.records().size(), static_cast<std::size_t>(pods) / 2);
  each([&](int i) {
    if (i % 2 != 0) node.must(call("CHECK", i));
  });
}

}  // namespace
}  // namespace sidetrack::netns
