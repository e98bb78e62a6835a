// SPDX-License-Identifier: GPL-2.0-or-later
// Rules that a text has in a chain where iptables or the kernel takes none of their kind: those of the kernel here.
#include "text/refused_place.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "rule/hook.h"
#include "support/kernel_test.h"
#include "support/network.h"
#include "text/read_rule.h"

namespace sidetrack::netns {
namespace {

constexpr const char* tried_rules[] = {
    "-p tcp -j REDIRECT --to-ports 80",
    "-j MASQUERADE",
    "-p tcp -j TPROXY --on-port 80",
    "-j REJECT",
    "-j CT --notrack",
    "-j NOTRACK",
    "-j MARK --set-mark 1",
    "-j CONNMARK --save-mark",
    "-j TOS --set-tos 16",
    "-j DSCP --set-dscp 1",
    "-p tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss 1000",
    "-j CLASSIFY --set-class 1:1",
    "-j CHECKSUM --checksum-fill",
    "-j LOG",
    "-j DROP",
    "-j RETURN",
    "-j INPUT",
    "-g OUTPUT",
    "-j OTHERS",
    "-m owner --uid-owner 1 -j ACCEPT",
    "-m socket -j ACCEPT",
    "-m rpfilter -j ACCEPT",
    "-m mac --mac-source 00:11:22:33:44:55 -j ACCEPT",
    "-m addrtype --src-type LOCAL --limit-iface-in -j ACCEPT",
    "-m addrtype --src-type LOCAL --limit-iface-out -j ACCEPT",
    "-m conntrack --ctstate NEW -j ACCEPT",
    "-i eth0 -j ACCEPT",
    "! -o eth0 -j ACCEPT",
    "-m comment --comment -i -j ACCEPT",
};
constexpr const char* tried_ipv4[] = {
    "-j DNAT --to-destination 10.0.0.1",
    "-j SNAT --to-source 10.0.0.1",
    "-j NETMAP --to 10.0.0.0/8",
    "-j TTL --ttl-set 3",
};

// Each alone in its chain: behind a rule that ends it for all packets, legacy iptables takes them.
class RefusedPlace : public KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  static void expect_as_kernel(const Namespace& pod, const std::string& rule) {
    for (const Table table : {Table::raw, Table::mangle, Table::nat, Table::filter, Table::security}) {
      for (const std::string& chain : builtin_chains(table)) {
        const std::string line = fmt::format("-A {} {}", chain, rule);
        const Output tried =
            pod.program({fmt::format("{}-restore", GetParam()), "--noflush"},
                        fmt::format("*{}\n:OTHERS - [0:0]\n-F {}\n{}\nCOMMIT\n", name(table), chain, line));
        const std::string why = why_refused_at(table, chain, rule_words(line));
        EXPECT_EQ(why.empty(), tried.exit_code == 0) << name(table) << " " << line << "\n" << why << "\n" << tried.err;
      }
    }
  }
};
INSTANTIATE_TEST_SUITE_P(, RefusedPlace,
                         ::testing::Values("iptables-legacy", "ip6tables-legacy", "iptables-nft", "ip6tables-nft"),
                         [](const auto& tested) {
                           return std::string(tested.param).replace(tested.param[2] == '6' ? 9 : 8, 1, "_");
                         });

TEST_P(RefusedPlace, IsThatOfTheKernel) {
  const Namespace pod;
  for (const char* rule : tried_rules) expect_as_kernel(pod, rule);
  if (std::string_view(GetParam()).starts_with("iptables")) {
    for (const char* rule : tried_ipv4) expect_as_kernel(pod, rule);
  } else {
    expect_as_kernel(pod, "-j HL --hl-set 3");
  }
}

}  // namespace
}  // namespace sidetrack::netns
