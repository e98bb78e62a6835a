// SPDX-License-Identifier: GPL-2.0-or-later
// The pod that a plan is for where there is none.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cctype>

#include "unit/asking.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

std::string interfaces(const char* options) {
  return fmt::format("{}", fmt::join(named_interfaces(planned(options)), " "));
}

TEST(AssumedPod, HasTheInterfacesThatRulesName) {
  EXPECT_EQ(interfaces("-b * -c eth0,lo"), "");
  EXPECT_EQ(interfaces("-b * -c net1,eth2 -k net3"), "eth2 net1 net3");
  // One of those that a pattern names, and nothing else does.
  EXPECT_EQ(interfaces("-b * -c net+"), "net0");
  EXPECT_EQ(interfaces("-b * -c net+,net0,net1"), "net0 net1 net2");
  EXPECT_EQ(interfaces("-b * -c eth+"), "eth1");
  EXPECT_EQ(interfaces("-b * -c et+"), "eth1");
  EXPECT_EQ(interfaces("-b * -c ets+"), "ets0");
  EXPECT_EQ(interfaces("-b * -c x0,x1,x2,x3,x4,x5,x6,x7,x8,x9,x+"), "x0 x1 x2 x3 x4 x5 x6 x7 x8 x9 xA");
  std::string all = "-b * -c l+";
  std::string sorted;
  for (char last = '0'; last < 'z'; ++last) {
    if (std::isalnum(static_cast<unsigned char>(last)) == 0 || last == 'o') continue;
    all += fmt::format(",l{}", last);
    sorted += fmt::format("l{} ", last);
  }
  EXPECT_EQ(interfaces(all.c_str()), sorted + "lz");
  EXPECT_EQ(interfaces((all + ",lz").c_str()), sorted + "lz") << "none is left";
}

TEST(AssumedPod, IsOnADocumentationNetwork) {
  std::string all = "\n";
  const PodView pod = assumed_pod(planned("-m TPROXY -b * -c net1,net2 --dual-stack"));
  for (const Interface& interface : pod.interfaces) {
    for (const InterfaceAddress& own : interface.addresses)
      all += fmt::format("{} {}/{}\n", interface.name, own.address.text(), own.prefix_length);
  }
  for (const Route& route : pod.routes) all += ip_words(route) + "\n";
  for (const PolicyRule& rule : pod.rules) all += ip_words(rule) + "\n";
  EXPECT_EQ(all, R"(
lo 127.0.0.1/8
lo ::1/128
lo ::6/128
eth0 192.0.2.2/24
eth0 2001:db8::2/64
net1 198.18.2.2/24
net1 2001:db8:1:2::2/64
net2 198.18.3.2/24
net2 2001:db8:1:3::2/64
ip route default dev eth0 table main
ip -6 route default dev eth0 table main
ip route 198.18.2.0/24 dev net1 table main
ip route default dev net1 table main
ip -6 route 2001:db8:1:2::/64 dev net1 table main
ip -6 route default dev net1 table main
ip route 198.18.3.0/24 dev net2 table main
ip route default dev net2 table main
ip -6 route 2001:db8:1:3::/64 dev net2 table main
ip -6 route default dev net2 table main
ip route local default dev lo table 133
ip -6 route local default dev lo table 133
ip rule 0: from all lookup local
ip rule 32765: fwmark 1337 lookup 133
ip rule 32766: from all lookup main
ip rule 32767: from all lookup default
ip -6 rule 0: from all lookup local
ip -6 rule 32765: fwmark 1337 lookup 133
ip -6 rule 32766: from all lookup main
)");
}

// As a backend holds a plan.
TEST(AsLive, HasChainsOfEachFamilyOrOfBoth) {
  std::string all = "\n";
  const Plan plan = planned("-i 10.0.0.0/8,fd00::/8 -x 10.1.0.0/16,10.2.0.0/16 --drop-invalid");
  for (const BackendKind backend : {BackendKind::iptables_legacy, BackendKind::nftables}) {
    const Live live = as_live(plan.ruleset, backend);
    all += fmt::format("{}\n", name(live.backend));
    for (const LiveChain& chain : live.chains) {
      all +=
          fmt::format("{} {} {}{}{}:", names(chain.families), chain.table_name, chain.name, chain.ours ? " (ours)" : "",
                      chain.hook ? fmt::format(" at {} {}", name(chain.hook->hook), chain.hook->priority) : "");
      for (const LiveRule& rule : chain.rules) {
        EXPECT_TRUE(rule.ours);
        EXPECT_FALSE(rule.rule.insert_at);
        EXPECT_EQ(rule.rule.table, chain.table);
        all += " " + names(rule.rule.families);
      }
      all += "\n";
    }
  }
  EXPECT_EQ(all, R"(
iptables-legacy
ipv4 mangle PREROUTING at PREROUTING -150: ipv4
ipv4 mangle ISTIO_DROP (ours): ipv4
ipv4 nat ISTIO_INBOUND (ours): ipv4
ipv4 nat ISTIO_REDIRECT (ours): ipv4
ipv4 nat ISTIO_IN_REDIRECT (ours): ipv4
ipv4 nat OUTPUT at OUTPUT -100: ipv4
ipv4 nat ISTIO_OUTPUT (ours): ipv4 ipv4 ipv4 ipv4 ipv4 ipv4 ipv4 ipv4 ipv4 ipv4 ipv4
ipv6 mangle PREROUTING at PREROUTING -150: ipv6
ipv6 mangle ISTIO_DROP (ours): ipv6
ipv6 nat ISTIO_INBOUND (ours): ipv6
ipv6 nat ISTIO_REDIRECT (ours): ipv6
ipv6 nat ISTIO_IN_REDIRECT (ours): ipv6
ipv6 nat OUTPUT at OUTPUT -100: ipv6
ipv6 nat ISTIO_OUTPUT (ours): ipv6 ipv6 ipv6 ipv6 ipv6 ipv6 ipv6 ipv6 ipv6
nftables
ipv4, ipv6 mangle PREROUTING at PREROUTING -150: ipv4, ipv6
ipv4, ipv6 mangle ISTIO_DROP (ours): ipv4, ipv6
ipv4, ipv6 nat ISTIO_INBOUND (ours): ipv4, ipv6
ipv4, ipv6 nat ISTIO_REDIRECT (ours): ipv4, ipv6
ipv4, ipv6 nat ISTIO_IN_REDIRECT (ours): ipv4, ipv6
ipv4, ipv6 nat OUTPUT at OUTPUT -100: ipv4, ipv6
ipv4, ipv6 nat ISTIO_OUTPUT (ours): ipv4 ipv6 ipv4 ipv6 ipv4, ipv6 ipv4, ipv6 ipv4 ipv6 ipv4, ipv6 ipv4, ipv6 ipv4 ipv6 ipv4 ipv4 ipv6
)");
}

}  // namespace
}  // namespace sidetrack
