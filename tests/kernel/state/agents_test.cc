// SPDX-License-Identifier: GPL-2.0-or-later
// The rules of an agent for an ambient pod, Istio's or Cilium's: known, explained, and left to it unless asked.
#include "support/agents.h"

#include <gmock/gmock.h>

#include "support/kernel_test.h"
#include "support/network.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Agents : public KernelTest, public ::testing::WithParamInterface<Agent> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ip(ns_,
       "link set lo up\nlink add eth0 type veth peer name peer0\naddr add 10.1.0.2/24 dev eth0\n"
       "addr add fd00:1::2/64 dev eth0 nodad\nlink set eth0 up\nlink set peer0 up\nroute add default via 10.1.0.1\n");
    GetParam().make(ns_);
    made_ = everything(ns_);
  }
  [[nodiscard]] Output sidetrack(std::vector<std::string> words) const {
    words.insert(words.begin(), program_under_test());
    return ns_.program(words);
  }
  [[nodiscard]] bool has_dns() const { return std::string(GetParam().whose) == "Istio"; }

  Namespace ns_;
  std::string made_;
};
INSTANTIATE_TEST_SUITE_P(, Agents, ::testing::ValuesIn(agents()), [](const auto& tested) { return tested.param.name; });

TEST_P(Agents, AreShownAndExplained) {
  const Output shown = sidetrack({"show"});
  EXPECT_THAT(shown.out, AllOf(HasSubstr(std::string("[") + GetParam().whose + "]"),
                               HasSubstr("goes to ztunnel's plaintext listener, port 15006"),
                               HasSubstr("goes to ztunnel's outbound listener, port 15001"),
                               Not(HasSubstr("[Istio or Sidetrack]")), Not(HasSubstr("[other]"))))
      << shown.out;
  const auto explained = [&](std::vector<std::string> packet) {
    packet.insert(packet.begin(), "explain");
    return sidetrack(packet).out;
  };
  EXPECT_THAT(explained({"out", "tcp", "10.96.0.10:80", "--brief"}), HasSubstr("15001"));
  EXPECT_THAT(explained({"in", "tcp", "10.1.0.2:8080", "--brief"}), HasSubstr("15006"));
  EXPECT_THAT(explained({"out", "tcp", "10.96.0.10:80"}), HasSubstr("ztunnel's outbound listener"));
  EXPECT_EQ(explained({"out", "udp", "10.96.0.10:53", "--brief"}).find("15053") != std::string::npos, has_dns());
  EXPECT_THAT(sidetrack({"map"}).out,
              AllOf(HasSubstr("-> 127.0.0.1:15001 (ztunnel outbound)  (-p 15001)"), HasSubstr("with mark 0x539/0xfff"),
                    HasSubstr("15006 (ztunnel inbound plaintext)")));
}

TEST_P(Agents, AreLeftAloneByClean) {
  const Output cleaned = sidetrack({"clean"});
  EXPECT_EQ(cleaned.exit_code, 0);
  EXPECT_THAT(cleaned.err, AllOf(HasSubstr("left as they are"), HasSubstr("clean --dataplane ambient")));
  EXPECT_EQ(everything(ns_), made_);
}

// diff --clean shows what clean does, and says what it leaves.
TEST_P(Agents, DiffCleanIsAsCleanDoes) {
  const Output left = sidetrack({"diff", "--clean"});
  EXPECT_EQ(left.exit_code, 0);
  EXPECT_EQ(left.out, "");
  EXPECT_THAT(left.err, AllOf(HasSubstr("left as they are"), HasSubstr("clean --dataplane ambient")));
  const Output removed = sidetrack({"diff", "--clean", "--dataplane", "ambient"});
  EXPECT_EQ(removed.exit_code, 6);
  EXPECT_THAT(removed.out, AllOf(HasSubstr("0x539"), HasSubstr("lookup 100")));
  EXPECT_THAT(removed.err, Not(HasSubstr("left as they are")));
  EXPECT_EQ(everything(ns_), made_);
}

TEST_P(Agents, AreNotReplacedByASidecarsRules) {
  for (const char* backend : backends) {
    const Output applied = sidetrack({"apply", "--backend", backend, "-i", "*", "-b", "*", "--dual-stack"});
    EXPECT_EQ(applied.exit_code, 1);
    EXPECT_THAT(applied.err, HasSubstr("this is an ambient pod"));
    EXPECT_EQ(everything(ns_), made_) << backend;
    const Output verified = sidetrack({"verify", "--backend", backend, "-i", "*", "-b", "*", "--dual-stack"});
    EXPECT_EQ(verified.exit_code, 6);
    EXPECT_THAT(verified.out + verified.err, HasSubstr("this is an ambient pod"));
  }
}

TEST_P(Agents, AreRemovedWhenThatIsAsked) {
  const Output cleaned = sidetrack({"clean", "--dataplane", "ambient"});
  EXPECT_EQ(cleaned.exit_code, 0) << cleaned.err;
  const std::string left = everything(ns_);
  for (const char* what : {"ISTIO", "CILIUM", "istio", "0x539", "0x111", "table 100"})
    EXPECT_THAT(left, Not(HasSubstr(what)));
  EXPECT_THAT(sidetrack({"clean", "--dataplane", "ambient"}).err, HasSubstr("nothing to remove"));
  EXPECT_EQ(sidetrack({"apply", "-i", "*", "-b", "*", "--dual-stack"}).exit_code, 0);
}

// What an agent made is what we would make: asked for the same, apply changes nothing; else it replaces it.
TEST_P(Agents, AreTheRulesThatAreAskedFor) {
  for (const char* backend : backends) {
    const std::vector<std::string> options{"--backend", backend, "--dataplane", "ambient", "--redirect-dns"};
    const auto call = [&](const char* command) {
      std::vector<std::string> words{command};
      words.insert(words.end(), options.begin(), options.end());
      return sidetrack(words);
    };
    if (GetParam().backend != nullptr && std::string(backend) == GetParam().backend) {
      EXPECT_EQ(call("verify").exit_code, 0) << call("verify").out;
      EXPECT_THAT(call("apply").err, HasSubstr("nothing to change"));
      EXPECT_EQ(everything(ns_), made_);
    }
  }
  for (const char* backend : backends) {
    const Output applied = sidetrack({"apply", "--backend", backend, "--dataplane", "ambient"});
    ASSERT_EQ(applied.exit_code, 0) << applied.err;
    const Output verified = sidetrack({"verify", "--backend", backend, "--dataplane", "ambient"});
    EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
    EXPECT_THAT(everything(ns_), AllOf(Not(HasSubstr("CILIUM")), Not(HasSubstr("istio-ambient"))));
  }
}

// As soon as apply changes a thing all is ours, policy rules and routes, too: clean removes all of it.
TEST_P(Agents, AreOursAfterAChange) {
  for (const char* backend : backends) {
    ASSERT_EQ(sidetrack({"clean", "--dataplane", "ambient"}).exit_code, 0);
    GetParam().make(ns_);
    const Output applied = sidetrack({"apply", "--backend", backend, "--dataplane", "ambient"});
    ASSERT_EQ(applied.exit_code, 0) << applied.err;
    EXPECT_THAT(applied.err, Not(HasSubstr("rule del")));
    for (const char* family : {"-4", "-6"}) {
      EXPECT_THAT(ns_.must({"ip", family, "rule", "list", "pref", "32764"}),
                  ::testing::MatchesRegex("32764:\tfrom all fwmark 0x111/0xfff lookup 100 proto 137 *\n"));
      EXPECT_THAT(ns_.must({"ip", family, "route", "list", "table", "100"}),
                  ::testing::MatchesRegex("local default dev lo proto 137 [^\n]*\n"));
    }
    EXPECT_THAT(sidetrack({"apply", "--backend", backend, "--dataplane", "ambient"}).err,
                HasSubstr("nothing to change"));
    const Output cleaned = sidetrack({"clean"});
    EXPECT_THAT(cleaned.err, AllOf(HasSubstr("removed all"), Not(HasSubstr("left as they are"))));
    const std::string left = everything(ns_);
    for (const char* what : {"ISTIO", "CILIUM", "istio", "0x539", "0x111", "local default"})
      EXPECT_THAT(left, Not(HasSubstr(what))) << backend;
  }
}

// Whoever removes the policy rule, the route still says that they are ours.
TEST_P(Agents, OursAreNoAgentsWithoutTheirPolicyRule) {
  for (const char* backend : backends) {
    ASSERT_EQ(sidetrack({"clean", "--dataplane", "ambient"}).exit_code, 0);
    const std::vector<std::string> ours{"apply", "--backend", backend, "--dataplane", "ambient"};
    ASSERT_EQ(sidetrack(ours).exit_code, 0);
    for (const char* family : {"-4", "-6"}) ns_.must({"ip", family, "rule", "del", "pref", "32764"});
    const Output cleaned = sidetrack({"clean"});
    EXPECT_THAT(cleaned.err, AllOf(HasSubstr("removed all"), Not(HasSubstr("left as they are")))) << backend;
    EXPECT_THAT(everything(ns_), AllOf(Not(HasSubstr("ISTIO")), Not(HasSubstr("local default")))) << backend;
  }
}

// A chain of that name is none of an agent, nor does it become one.
TEST_P(Agents, AChainOfOthersIsNone) {
  ASSERT_EQ(sidetrack({"clean", "--dataplane", "ambient"}).exit_code, 0);
  for (const std::string iptables : {"iptables-legacy", "iptables"}) {
    for (const std::string chain : {"ISTIO_PRERT", "CILIUM_OUTPUT"}) {
      ns_.must({iptables, "-t", "nat", "-N", chain});
      ns_.must({iptables, "-t", "nat", "-A", chain, "-p", "tcp", "--dport", "7", "-j", "ACCEPT"});
      if (chain == "CILIUM_OUTPUT") ns_.must({iptables, "-t", "nat", "-A", "OUTPUT", "-j", chain});
      const std::string was = ns_.must({iptables, "-t", "nat", "-S"});
      EXPECT_EQ(sidetrack({"apply", "-i", "*"}).exit_code, 0) << iptables << chain;
      EXPECT_EQ(sidetrack({"clean"}).exit_code, 0);
      EXPECT_EQ(sidetrack({"clean", "--dataplane", "ambient"}).exit_code, 0);
      EXPECT_EQ(ns_.must({iptables, "-t", "nat", "-S"}), was);
      ns_.must({iptables, "-t", "nat", "-F"});
      ns_.must({iptables, "-t", "nat", "-X"});
    }
  }
}

// Of one family alone, and the other one is added.
TEST_P(Agents, OfOneFamilyAreOursWhenTheOtherIsAdded) {
  ns_.must({"ip", "-6", "rule", "del", "pref", "32764"});
  ns_.must({"ip", "-6", "route", "flush", "table", "100"});
  if (GetParam().backend != nullptr) {
    const std::string iptables = std::string("ip6") + (GetParam().backend + std::string_view("ip").size());
    for (const char* table : {"nat", "mangle", "raw"}) ns_.must({iptables, "-t", table, "-F"});
  }
  ASSERT_EQ(sidetrack({"apply", "--dataplane", "ambient", "--redirect-dns"}).exit_code, 0);
  EXPECT_EQ(sidetrack({"clean"}).exit_code, 0);
  const std::string left = everything(ns_);
  for (const char* what : {"ISTIO", "CILIUM", "istio", "0x539", "0x111", "local default"})
    EXPECT_THAT(left, Not(HasSubstr(what)));
}

// Rolled back, they are the agent's again.
TEST_P(Agents, AreTheAgentsAgainAfterARollBack) {
  for (const char* backend : backends) {
    const Output applied = sidetrack({"apply", "--backend", backend, "--dataplane", "ambient", "--confirm", "1ms"});
    EXPECT_EQ(applied.exit_code, 1);
    const bool in_own_tables = GetParam().name == std::string_view("istio_nftables");
    EXPECT_THAT(applied.err, HasSubstr(in_own_tables ? "of an agent could not be put back" : "rolled back; "));
    if (in_own_tables) {
      EXPECT_EQ(everything(ns_), made_);
    }
    for (const char* family : {"-4", "-6"}) {
      EXPECT_THAT(ns_.must({"ip", family, "rule", "list", "pref", "32764"}),
                  ::testing::MatchesRegex("32764:\tfrom all fwmark 0x111/0xfff lookup 100 *\n"));
      EXPECT_THAT(ns_.must({"ip", family, "route", "list", "table", "100"}), Not(HasSubstr("proto 137")));
    }
    EXPECT_THAT(sidetrack({"clean"}).err, HasSubstr("left as they are"));
  }
}

TEST_P(Agents, LintKnowsThem) {
  const Output found = sidetrack({"lint"});
  EXPECT_THAT(found.out + found.err, AllOf(Not(HasSubstr("no rules of a sidecar")), Not(HasSubstr("comes back to"))))
      << found.out;
}

}  // namespace
}  // namespace sidetrack::netns
