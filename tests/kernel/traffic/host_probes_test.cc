// SPDX-License-Identifier: GPL-2.0-or-later
// `host-probes`, by real connections: a process of the node asks a pod, which sees where it comes from; another host
// asks it through the node.
#include <gmock/gmock.h>
#include <poll.h>

#include <cerrno>
#include <memory>
#include <thread>

#include "support/endpoint.h"
#include "support/kernel_test.h"
#include "support/namespace.h"
#include "support/network.h"
#include "support/refused_call.h"
#include "support/traffic.h"
#include "unit/temporary_file.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* probe4 = "169.254.7.127";
constexpr const char* probe6 = "fd16:9254:7127:1337:ffff:ffff:ffff:ffff";
constexpr const char* pod4 = "10.244.0.7";
constexpr const char* pod6 = "fd10:244::7";
constexpr const char* other_pod4 = "10.244.0.8";
constexpr const char* node4 = "10.244.0.1";
constexpr const char* node6 = "fd10:244::1";
constexpr const char* client4 = "192.0.2.9";
constexpr const char* client6 = "fd00:2::9";

// A node with a pod and a host beyond it, whose packets it forwards.
class Node : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (const Namespace* each : {&node, &pod, &client}) {
      trust_addresses(*each);
      ip(*each, "link set lo up\n");
    }
    join(node, "cali1", pod, "eth0");
    join(node, "eth0", client, "eth0");
    ip(node,
       "addr add 10.244.0.1/24 dev cali1\naddr add fd10:244::1/64 dev cali1\n"
       "addr add 192.0.2.1/24 dev eth0\naddr add fd00:2::1/64 dev eth0\n");
    ip(pod,
       "addr add 10.244.0.7/24 dev eth0\naddr add fd10:244::7/64 dev eth0\naddr add 10.244.0.8/24 dev eth0\n"
       "route add default via 10.244.0.1\nroute add default via fd10:244::1\n");
    ip(client,
       "addr add 192.0.2.9/24 dev eth0\naddr add fd00:2::9/64 dev eth0\n"
       "route add default via 192.0.2.1\nroute add default via fd00:2::1\n");
    set_sysctl(node, "ipv4/ip_forward", "1");
    set_sysctl(node, "ipv6/conf/all/forwarding", "1");
    for (const Namespace* each : {&node, &pod, &client}) wait_for_addresses(*each);
  }

  [[nodiscard]] Output host_probes(std::vector<std::string> words) const {
    words.insert(words.begin(), {program_under_test(), "host-probes"});
    return node.program(words);
  }
  void must(std::vector<std::string> words) const {
    const Output output = host_probes(std::move(words));
    ASSERT_EQ(output.exit_code, 0) << output.err;
  }

  // Connects to that address of the pod, and returns where the pod sees it come from; the pod's answer has to arrive.
  [[nodiscard]] std::string seen(const Namespace& from, const char* address) const {
    constexpr int guard = 5000;  // milliseconds
    const auto wait = [](int fd, short events) {
      pollfd ready{fd, events, 0};
      if (poll(&ready, 1, guard) != 1) throw std::runtime_error("nothing came");
    };
    const FileDescriptor listener = pod.run([&] {
      FileDescriptor made(check(::socket(Endpoint(address, 0).domain(), SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
      const sockaddr_storage any = Endpoint(address, 0).socket_address();
      check(bind(made.get(), pointer(any), socket_address_size), "bind");
      check(listen(made.get(), 1), "listen");
      return made;
    });
    const Endpoint to(address, local_end(listener.get()).port);
    const FileDescriptor asking = from.run([&] {
      FileDescriptor made(check(::socket(to.domain(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket"));
      const sockaddr_storage there = to.socket_address();
      if (::connect(made.get(), pointer(there), socket_address_size) != 0 && errno != EINPROGRESS) check(-1, "connect");
      return made;
    });
    wait(listener.get(), POLLIN);
    const FileDescriptor taken(check(accept(listener.get(), nullptr, nullptr), "accept"));
    check(static_cast<int>(write(taken.get(), "y", 1)), "write");
    wait(asking.get(), POLLIN);
    char answer = 0;
    EXPECT_EQ(read(asking.get(), &answer, 1), 1);
    EXPECT_EQ(answer, 'y');
    return remote_end(taken.get()).address.text();
  }

  // All that could be left behind, without what counts.
  [[nodiscard]] std::string state() const {
    return node.must({"sh", "-c",
                      "{ iptables-legacy-save -t nat; ip6tables-legacy-save -t nat; nft list ruleset; ipset save; } |"
                      "sed -E '/^#/d; s/ packets [0-9]+ bytes [0-9]+//; s/ \\[[0-9]+:[0-9]+\\]//'"});
  }

  Namespace node, pod, client;
};

class HostProbes : public Node, public ::testing::WithParamInterface<const char*> {
 protected:
  // Of words for `host-probes apply`.
  void apply(std::vector<std::string> more) const {
    std::vector<std::string> words{"apply", "--backend", GetParam()};
    words.insert(words.end(), more.begin(), more.end());
    must(words);
  }
};
INSTANTIATE_TEST_SUITE_P(, HostProbes, ::testing::ValuesIn(backends), backend_name);

TEST_P(HostProbes, ComeFromTheProbeAddressToPodsInTheSetAlone) {
  apply({});
  EXPECT_EQ(seen(node, pod4), node4);
  EXPECT_EQ(seen(node, pod6), node6);
  apply({"--add", std::string(pod4) + "," + pod6});
  EXPECT_EQ(seen(node, pod4), probe4);
  EXPECT_EQ(seen(node, pod6), probe6);
  EXPECT_EQ(seen(node, other_pod4), node4);
  EXPECT_EQ(seen(client, pod4), client4);  // forwarded: no socket of the node sends it
  EXPECT_EQ(seen(client, pod6), client6);
  apply({"--remove", pod4});
  EXPECT_EQ(seen(node, pod4), node4);
  EXPECT_EQ(seen(node, pod6), probe6);
  must({"clean"});
  EXPECT_EQ(seen(node, pod6), node6);
}

TEST_P(HostProbes, AgainChangeNothing) {
  apply({"--add", pod4});
  const std::string before = state();
  EXPECT_EQ(host_probes({"verify"}).exit_code, 0);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"apply"}, {"apply", "--add", pod4}, {"apply", "--remove", "10.244.0.99"}}) {
    const Output again = host_probes(words);
    EXPECT_EQ(again.exit_code, 0);
    EXPECT_THAT(again.err, HasSubstr("nothing to change"));
    EXPECT_EQ(state(), before);
  }
}

TEST_P(HostProbes, ApplySaysWhichAddressesItAddsAndRemoves) {
  apply({"--add", pod4});
  const auto said = [&](const std::vector<std::string>& words) { return host_probes(words).err; };
  EXPECT_THAT(said({"apply", "--add", std::string(pod4) + "," + other_pod4 + "," + pod6}),
              HasSubstr(std::string("added ") + other_pod4 + ", " + pod6 + "; "));
  EXPECT_THAT(said({"apply", "--remove", other_pod4}), HasSubstr(std::string("removed ") + other_pod4 + "; "));
  std::string many;
  for (int i = 20; i < 32; ++i) many += (i > 20 ? ",10.244.0." : "10.244.0.") + std::to_string(i);
  EXPECT_THAT(said({"apply", "--add", many}), HasSubstr("10.244.0.27 and 4 more addresses; "));
}

TEST_P(HostProbes, VerifySaysWhatDiffers) {
  EXPECT_EQ(host_probes({"verify", "--backend", GetParam()}).exit_code, 6);
  apply({"--add", pod4});
  Output verified = host_probes({"verify"});
  EXPECT_EQ(verified.exit_code, 0);
  EXPECT_EQ(verified.out, std::string(pod4) + "\n");
  verified = host_probes({"verify", "--add", other_pod4});
  EXPECT_EQ(verified.exit_code, 6);
  EXPECT_THAT(verified.err,
              AllOf(HasSubstr("the node differs"), HasSubstr("'sidetrack host-probes apply' with these")));
  EXPECT_THAT(verified.out, HasSubstr(other_pod4));
  verified = host_probes({"verify", "--probe-address", "169.254.7.128"});
  EXPECT_EQ(verified.exit_code, 6);
  EXPECT_THAT(verified.out, HasSubstr("169.254.7.128"));
  const Output document = host_probes({"verify", "--json"});
  EXPECT_EQ(document.exit_code, 0);
  EXPECT_THAT(document.out, AllOf(HasSubstr(R"("addresses": ["10.244.0.7"])"), HasSubstr(GetParam())));
}

TEST_P(HostProbes, AddressesMoveWithTheBackend) {
  must({"apply", "--backend", "nftables", "--add", std::string(pod4) + "," + other_pod4 + "," + pod6});
  apply({});
  must({"apply", "--backend", "iptables-nft"});
  apply({});
  EXPECT_EQ(seen(node, pod4), probe4);
  EXPECT_EQ(seen(node, other_pod4), probe4);
  EXPECT_EQ(seen(node, pod6), probe6);
}

TEST_P(HostProbes, LeaveOthersRulesAlone) {
  const bool legacy = std::string(GetParam()) == "iptables-legacy";
  const std::string save = legacy ? "iptables-legacy-save" : "iptables-nft-save";
  const std::string iptables = legacy ? "iptables-legacy" : "iptables-nft";
  node.must(
      {iptables, "-t", "nat", "-A", "POSTROUTING", "-s", "10.244.0.0/24", "!", "-d", "10.0.0.0/8", "-j", "MASQUERADE"});
  node.must({"ipset", "create", "others", "hash:net"});
  node.must({"ipset", "add", "others", "10.0.0.0/8"});
  const auto rules = [&] {
    return node.must({"sh", "-c", save + " -t nat | sed -E '/^#/d; s/ \\[[0-9:]+\\]//'; ipset save"});
  };
  const std::string before = rules();
  apply({"--add", pod4});
  EXPECT_THAT(rules(), HasSubstr("MASQUERADE"));
  EXPECT_EQ(seen(node, pod4), probe4);
  must({"clean"});
  EXPECT_EQ(rules(), before);
}

// Another program's rule before the jump: what verify says is what a connection shows.
TEST_F(Node, TheJumpGoesBeforeARuleThatDecidesFirst) {
  for (const std::string backend : {"iptables-legacy", "iptables-nft"}) {
    for (const std::string rule : {"-p tcp -j SNAT --to-source 10.244.0.1", "-d 10.244.0.7/32 -j RETURN"}) {
      must({"apply", "--backend", backend, "--add", pod4});
      const auto insert = [&](const std::string& words) {
        node.must({"sh", "-c", backend + " -t nat -I POSTROUTING 1 " + words});
      };
      insert(rule);
      insert("-p udp -j RETURN");  // is in nobody's way
      EXPECT_EQ(seen(node, pod4), node4);
      const Output verified = host_probes({"verify"});
      EXPECT_EQ(verified.exit_code, 6);
      EXPECT_THAT(verified.err, AllOf(HasSubstr(rule), HasSubstr("out tcp 10.244.0.7:80"), Not(HasSubstr("udp"))));
      EXPECT_THAT(verified.err, HasSubstr("'sidetrack host-probes apply' would put its jump before"));
      EXPECT_THAT(host_probes({"apply"}).err, HasSubstr("programmed"));
      EXPECT_EQ(seen(node, pod4), probe4);
      EXPECT_EQ(host_probes({"verify"}).exit_code, 0);
      EXPECT_THAT(host_probes({"apply"}).err, HasSubstr("nothing to change"));
      node.must({backend, "-t", "nat", "-F"});
      must({"clean"});
    }
  }
}

TEST_P(HostProbes, SayThatAChainOfLowerPriorityDecidesFirst) {
  apply({"--add", pod4});
  node.must({"nft", "-f", "-"},
            "table ip others {\n  chain first {\n    type nat hook postrouting priority 50\n"
            "    ip daddr 10.244.0.0/24 tcp dport != 1 snat to 10.244.0.1\n  }\n}\n");
  EXPECT_EQ(seen(node, pod4), node4);
  const Output verified = host_probes({"verify"});
  EXPECT_EQ(verified.exit_code, 6);
  EXPECT_THAT(verified.err, AllOf(HasSubstr("ip others first"), HasSubstr("its source is now 10.244.0.1")));
  const Output applied = host_probes({"apply"});
  EXPECT_EQ(applied.exit_code, 0);
  EXPECT_THAT(applied.err, AllOf(HasSubstr("warning: rule 1 of ip others first"), HasSubstr("nothing to change")));
  node.must({"nft", "delete", "table", "ip", "others"});
  EXPECT_EQ(host_probes({"verify"}).exit_code, 0);
}

TEST_P(HostProbes, ExplainFollowsThem) {
  apply({"--add", pod4});
  const auto explained = [&](const char* address) {
    return node.must({program_under_test(), "explain", "out", "tcp", std::string(address) + ":8080"});
  };
  EXPECT_THAT(explained(pod4),
              AllOf(HasSubstr(std::string("its source is now ") + probe4), HasSubstr(std::string(", from ") + probe4)));
  EXPECT_THAT(explained(other_pod4), Not(HasSubstr("its source is now")));
  EXPECT_THAT(node.must({program_under_test(), "map", "--way", "out"}),
              AllOf(HasSubstr(std::string("leaves from ") + probe4 + ", by "), Not(HasSubstr("match-set"))));
  EXPECT_THAT(node.must({program_under_test(), "show"}), AllOf(HasSubstr("Sidetrack]"), Not(HasSubstr("[other]"))));
}

TEST_P(HostProbes, StayWhenTheSidecarsRulesAreCleaned) {
  apply({"--add", pod4});
  const std::string before = state();
  node.must({program_under_test(), "clean"});
  EXPECT_EQ(state(), before);
}

// ---- Istio's own.

TEST_F(Node, RulesOfIstiosAgentAreRecognised) {
  node.must({"ipset", "create", "istio-inpod-probes-v4", "hash:ip", "comment"});
  node.must({"ipset", "add", "istio-inpod-probes-v4", pod4, "comment", "3a1f"});
  node.must({"ipset", "create", "istio-inpod-probes-v6", "hash:ip", "family", "inet6", "comment"});
  for (const char* version : {"4", "6"}) {
    const bool ipv4 = *version == '4';
    node.must({ipv4 ? "iptables-nft-restore" : "ip6tables-nft-restore", "--noflush"},
              std::string("*nat\n-N ISTIO_POSTRT\n-I POSTROUTING 1 -j ISTIO_POSTRT\n"
                          "-A ISTIO_POSTRT -m owner --socket-exists -p tcp -m set --match-set istio-inpod-probes-v") +
                  version + " dst -j SNAT --to-source " + (ipv4 ? probe4 : probe6) + "\nCOMMIT\n");
  }
  const std::string before = state();
  EXPECT_EQ(seen(node, pod4), probe4);
  const Output verified = host_probes({"verify"});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  EXPECT_EQ(verified.out, std::string(pod4) + "\n");
  must({"apply"});
  EXPECT_EQ(state(), before);
  must({"clean"});
  EXPECT_THAT(state(), AllOf(Not(HasSubstr("ISTIO")), Not(HasSubstr("istio"))));
}

TEST_F(Node, IstiosTableOfNftablesIsFollowedAndLeftAlone) {
  node.must({"nft", "-f", "-"},
            "table inet istio-ambient-nat {\n"
            "  set istio-inpod-probes-v4 { type ipv4_addr; comment \"UUID of the pods that are part of ambient mesh\"\n"
            "    elements = { 10.244.0.7 comment \"3a1f\" } }\n"
            "  chain postrouting {\n"
            "    type nat hook postrouting priority 100\n"
            "    meta l4proto tcp skuid 0 ip daddr @istio-inpod-probes-v4 counter snat ip to 169.254.7.127\n"
            "  }\n}\n");
  const std::string before = state();
  const auto explained = [&](const char* address) {
    return node.must({program_under_test(), "explain", "out", "tcp", std::string(address) + ":80", "--uid", "0"});
  };
  EXPECT_EQ(seen(node, pod4), probe4);
  EXPECT_THAT(explained(pod4),
              AllOf(HasSubstr(std::string("its source is now ") + probe4), HasSubstr(std::string(", from ") + probe4)));
  EXPECT_THAT(explained(other_pod4), Not(HasSubstr("its source is now")));
  must({"clean"});
  EXPECT_EQ(state(), before);
}

TEST_F(Node, WhatASetHoldsIsKnownOrSaidToBeUnknown) {
  node.must({"ipset", "create", "nets", "hash:net"});
  node.must({"ipset", "add", "nets", "10.244.0.0/29"});
  node.must({"ipset", "create", "expiring", "hash:ip", "timeout", "600"});
  node.must({"ipset", "create", "services", "hash:ip,port"});
  const auto explained = [&](const std::vector<std::string>& matches, const char* address) {
    std::vector<std::string> words{"iptables-nft", "-A", "OUTPUT", "-j", "DROP"};
    words.insert(words.end(), matches.begin(), matches.end());
    node.must({"iptables-nft", "-F", "OUTPUT"});
    node.must(words);
    return node.must({program_under_test(), "explain", "out", "tcp", std::string(address) + ":80"});
  };
  node.must({"iptables-nft", "-N", "unused"});  // makes the table
  EXPECT_THAT(explained({"-m", "set", "--match-set", "nets", "dst"}, pod4), HasSubstr("dropped"));
  EXPECT_THAT(explained({"-m", "set", "--match-set", "nets", "dst"}, other_pod4), Not(HasSubstr("dropped")));
  EXPECT_THAT(explained({"-m", "set", "!", "--match-set", "nets", "dst"}, other_pod4), HasSubstr("dropped"));
  EXPECT_THAT(explained({"-m", "set", "--match-set", "nets", "src"}, pod4), HasSubstr("dropped"));
  EXPECT_THAT(explained({"-m", "owner", "--socket-exists"}, pod4), HasSubstr("dropped"));
  EXPECT_THAT(explained({"-m", "owner", "!", "--socket-exists"}, pod4), Not(HasSubstr("dropped")));
  for (const std::vector<std::string>& unknown : std::vector<std::vector<std::string>>{
           {"-m", "set", "--match-set", "expiring", "dst"}, {"-m", "set", "--match-set", "services", "dst,dst"}}) {
    EXPECT_THAT(explained(unknown, pod4), HasSubstr("cannot know"));
  }
}

// ---- What is refused.

TEST_F(Node, ASetOfAnotherTypeIsRefusedByNameWhereItIsNeeded) {
  const std::pair<std::vector<std::string>, const char*> others[] = {
      {{"hash:net"}, "hash:net of IPv4, not hash:ip of IPv4"},
      {{"hash:ip", "timeout", "100"}, "hash:ip of IPv4 with a timeout, not"},
      {{"hash:ip", "netmask", "24", "timeout", "9"}, "hash:ip of IPv4 with a netmask and a timeout, not"},
      {{"hash:ip", "family", "inet6"}, "hash:ip of IPv6, not hash:ip of IPv4"}};
  for (const auto& [words, expected] : others) {
    std::vector<std::string> create{"ipset", "create", "istio-inpod-probes-v4"};
    create.insert(create.end(), words.begin(), words.end());
    node.must(create);
    const std::string before = state();
    for (const char* action : {"apply", "verify"}) {
      const Output refused = host_probes({action});
      EXPECT_EQ(refused.exit_code, 1);
      EXPECT_THAT(refused.err, AllOf(HasSubstr("istio-inpod-probes-v4"), HasSubstr(expected), HasSubstr("rename"),
                                     HasSubstr("--backend nftables")));
    }
    EXPECT_EQ(state(), before);
    must({"apply", "--backend", "nftables", "--add", pod4});
    EXPECT_EQ(seen(node, pod4), probe4);
    EXPECT_EQ(host_probes({"verify"}).exit_code, 0);
    const Output cleaned = host_probes({"clean"});
    EXPECT_EQ(cleaned.exit_code, 0);
    EXPECT_THAT(cleaned.err, AllOf(HasSubstr("istio-inpod-probes-v4"), HasSubstr("left as it is")));
    EXPECT_EQ(state(), before);
    node.must({"ipset", "destroy", "istio-inpod-probes-v4"});
  }
}

TEST_F(Node, ASetThatIsNotUnderstoodAndOurRulesAskIsRefused) {
  node.must({"ipset", "create", "istio-inpod-probes-v4", "hash:ip", "timeout", "100"});
  node.must({"iptables-nft-restore", "--noflush"},
            "*nat\n-N ISTIO_POSTRT\n-I POSTROUTING 1 -j ISTIO_POSTRT\n-A ISTIO_POSTRT -m owner --socket-exists -p tcp "
            "-m set --match-set istio-inpod-probes-v4 dst -j SNAT --to-source 169.254.7.127\nCOMMIT\n");
  const std::string before = state();
  const Output refused = host_probes({"apply", "--backend", "nftables"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("with a timeout"));
  EXPECT_EQ(state(), before);
}

TEST_F(Node, ASetThatOthersAskIsRefusedByName) {
  must({"apply", "--backend", "iptables-nft", "--add", pod4});
  node.must(
      {"iptables-nft", "-A", "INPUT", "-m", "set", "--match-set", "istio-inpod-probes-v4", "src", "-j", "ACCEPT"});
  const std::string before = state();
  const Output refused = host_probes({"clean"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("istio-inpod-probes-v4"), HasSubstr("-j ACCEPT")));
  EXPECT_EQ(state(), before);
}

TEST_F(Node, VerifySaysWhatApplyWouldRefuse) {
  must({"apply", "--backend", "iptables-nft", "--add", pod4});
  node.must(
      {"ip6tables-nft", "-A", "INPUT", "-m", "set", "--match-set", "istio-inpod-probes-v6", "src", "-j", "ACCEPT"});
  EXPECT_THAT(host_probes({"verify"}).err, Not(HasSubstr("would refuse")));
  const Output output = host_probes({"verify", "--ip-families", "ipv4"});
  EXPECT_EQ(output.exit_code, 6);
  EXPECT_THAT(output.err, HasSubstr("warning: apply would refuse: the set istio-inpod-probes-v6 cannot be destroyed: "
                                    "another program's rule asks it"));
}

// As booted with ipv6.disable=1: then only sockets of IPv4 can be had.
TEST_F(Node, WithoutIpv6InTheKernelOnlyIpv4IsProgrammed) {
  Output refused;
  std::string after_refusal;
  Output applied;
  std::thread([&] {
    refuse_call(SYS_socket, 0, AF_INET6, EAFNOSUPPORT);
    refused = host_probes({"apply", "--add", std::string(pod4) + "," + pod6});
    after_refusal = state();
    applied = host_probes({"apply", "--add", pod4});
  }).join();
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("--add: fd10:244::7: the kernel has no IPv6; leave it out, or boot without "
                                     "ipv6.disable=1"));
  EXPECT_THAT(after_refusal, Not(HasSubstr("ISTIO")));
  EXPECT_EQ(applied.exit_code, 0) << applied.err;
  EXPECT_THAT(state(), AllOf(HasSubstr(probe4), Not(HasSubstr(probe6))));
}

TEST_F(Node, ASetInASetIsRefusedByName) {
  must({"apply", "--backend", "iptables-nft", "--add", pod4});
  node.must({"ipset", "create", "all", "list:set"});
  node.must({"ipset", "add", "all", "istio-inpod-probes-v4"});
  const std::string before = state();
  const Output refused = host_probes({"clean"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err,
              HasSubstr("the set istio-inpod-probes-v4 cannot be destroyed: 2 of the kernel's objects use it, and 1 "
                        "of them are rules of ours; 'ipset list' shows sets of sets"));
  EXPECT_EQ(state(), before);
}

TEST_F(Node, AFullSetLeavesAllAsItWas) {
  node.must({"ipset", "create", "istio-inpod-probes-v4", "hash:ip", "maxelem", "1"});
  node.must({"ipset", "add", "istio-inpod-probes-v4", "10.244.0.20"});
  const std::string before = state();
  const Output refused = host_probes({"apply", "--backend", "iptables-nft", "--add", pod4});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("full"), HasSubstr(pod4), HasSubstr("istio-inpod-probes-v4")));
  EXPECT_THAT(refused.err, HasSubstr("ipset destroy istio-inpod-probes-v4"));
  EXPECT_EQ(state(), before);
  must({"clean"});
  must({"apply", "--backend", "iptables-nft", "--add", pod4});
  EXPECT_EQ(seen(node, pod4), probe4);
}

TEST_P(HostProbes, MoreThanASetHoldsAreRefused) {
  std::string addresses;
  for (int i = 0; i < 69'000; ++i)
    addresses +=
        "10." + std::to_string(i >> 16) + "." + std::to_string(i >> 8 & 255) + "." + std::to_string(i & 255) + "\n";
  const ::sidetrack::testing::TemporaryFile file(addresses.substr(addresses.find('\n') + 1));
  const std::string before = state();
  const Output refused = host_probes({"apply", "--backend", GetParam(), "--add", "@" + file.path()});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("68999"), HasSubstr("65536")));
  EXPECT_EQ(state(), before);
  apply({});
}

TEST_F(Node, WhatTheKernelLacksIsNamedAndNothingIsLeftBehind) {
  const std::string before = state();
  for (const char* backend : {"iptables-legacy", "iptables-nft"}) {
    for (const char* lacking : {"hash:ip", "set", "owner", "SNAT"}) {
      const Output refused =
          node.program({program_under_test(), "host-probes", "apply", "--add", pod4, "--backend", backend}, {},
                       {"LD_PRELOAD=" SIDETRACK_WITHOUT, std::string("WITHOUT=") + lacking});
      EXPECT_EQ(refused.exit_code, 3) << backend << ", " << lacking;
      EXPECT_THAT(refused.err, AllOf(HasSubstr(lacking), HasSubstr("CONFIG_")));
      EXPECT_EQ(state(), before) << backend << ", " << lacking;
    }
  }
}

TEST_F(Node, BadAddressesTouchNothing) {
  const std::string before = state();
  for (const char* address :
       {"127.0.0.1", "::1", "0.0.0.0", "::", "224.0.0.1", "ff02::1", "fe80::1", "10.244.0.7/24", "pod", probe4}) {
    const Output refused = host_probes({"apply", "--add", address});
    EXPECT_EQ(refused.exit_code, 2) << address;
    EXPECT_THAT(refused.err, AllOf(HasSubstr("--add"), HasSubstr(address)));
  }
  EXPECT_EQ(host_probes({"apply", "--probe-address", "fd00::1"}).exit_code, 2);
  EXPECT_EQ(host_probes({"apply", "--probe-address6", "10.0.0.1"}).exit_code, 2);
  EXPECT_EQ(host_probes({"apply", "--probe-address6", "fe80::1"}).exit_code, 2);
  EXPECT_EQ(host_probes({"apply", "--ip-families", "ipv4", "--add", pod6}).exit_code, 2);
  EXPECT_EQ(host_probes({"apply", "--add", pod4, "--remove", pod4}).exit_code, 2);
  EXPECT_EQ(host_probes({"clean", "--add", pod4}).exit_code, 2);
  EXPECT_EQ(host_probes({"apply", "--json"}).exit_code, 2);
  EXPECT_EQ(state(), before);
}

}  // namespace
}  // namespace sidetrack::netns
