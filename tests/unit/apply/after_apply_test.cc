// SPDX-License-Identifier: GPL-2.0-or-later
#include "apply/after_apply.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernel/survey.h"
#include "rule/iptables.h"
#include "unit/asking.h"
#include "unit/live_rules.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

std::string chains_of(const std::vector<Live>& all) {
  std::string text;
  for (const Live& live : all) {
    text += fmt::format("{}\n", name(live.backend));
    for (const LiveChain& each : live.chains) {
      text +=
          fmt::format("  {} {} {}{}\n", names(each.families), each.table_name, each.name, each.ours ? " (ours)" : "");
      for (const LiveRule& rule : each.rules)
        text += fmt::format("    {}{}\n", iptables_words(rule.rule), rule.ours ? " (ours)" : "");
    }
  }
  return text;
}

// Chains that are added are in the tables that the kernel calls so.
TEST(AfterApply, WhatIsAddedIsInTheTableOfWhatIsThere) {
  for (const BackendKind backend : {BackendKind::iptables_nft, BackendKind::iptables_legacy}) {
    const bool nft = backend == BackendKind::iptables_nft;
    const Ruleset wanted = canonical(backend, planned("-i * --ip-families ipv4,ipv6").ruleset);
    Live live;
    live.backend = backend;
    std::vector<Live> all{live};
    add_first(all, Family::ipv4, Table::nat, "-A OUTPUT -p udp -j ACCEPT");
    if (nft) all.front().chains.front().table_name = "ip nat";
    const std::vector<Live> after = after_apply(wanted, backend, false, all);
    std::string tables;
    for (const LiveChain& each : after.front().chains) {
      if (each.name.ends_with("OUTPUT"))
        tables += fmt::format("{} {} {}; ", names(each.families), each.table_name, each.name);
    }
    EXPECT_EQ(tables,
              nft ? "ipv4 ip nat OUTPUT; ipv4 ip nat ISTIO_OUTPUT; ipv6 ip6 nat OUTPUT; ipv6 ip6 nat ISTIO_OUTPUT; "
                  : "ipv4 nat OUTPUT; ipv4 nat ISTIO_OUTPUT; ipv6 nat OUTPUT; ipv6 nat ISTIO_OUTPUT; ");
  }
}

TEST(AfterApply, OursStandWhereTheyAreAskedForAndOthersWhereTheyStood) {
  const Ruleset before = planned("-i * -b 80 --ip-families ipv4").ruleset;
  const Ruleset wanted = canonical(BackendKind::iptables_nft, planned("-i 10.0.0.0/8 -b * --ip-families ipv4").ruleset);
  std::vector<Live> live{as_live(before, BackendKind::iptables_legacy), as_live(before, BackendKind::iptables_nft)};
  for (Live& each : live) {
    std::vector<Live> one{each};
    add_first(one, Family::ipv4, Table::nat, "-A OUTPUT -p tcp --dport 22 -j ACCEPT");
    add_first(one, Family::ipv4, Table::filter, "-A INPUT -p udp -j DROP");
    each = one.front();
  }
  EXPECT_EQ("\n" + chains_of(after_apply(wanted, BackendKind::iptables_nft, false, live)), R"(
iptables-legacy
  ipv4 nat PREROUTING
  ipv4 nat OUTPUT
    -A OUTPUT -p tcp --dport 22 -j ACCEPT
  ipv4 filter INPUT
    -A INPUT -p udp -j DROP
iptables-nft
  ipv4 nat ISTIO_INBOUND (ours)
    -A ISTIO_INBOUND -p tcp --dport 15008 -j RETURN (ours)
    -A ISTIO_INBOUND -p tcp -j ISTIO_IN_REDIRECT (ours)
  ipv4 nat ISTIO_REDIRECT (ours)
    -A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001 (ours)
  ipv4 nat ISTIO_IN_REDIRECT (ours)
    -A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006 (ours)
  ipv4 nat PREROUTING
    -A PREROUTING -p tcp -j ISTIO_INBOUND (ours)
  ipv4 nat OUTPUT
    -A OUTPUT -p tcp --dport 22 -j ACCEPT
    -A OUTPUT -j ISTIO_OUTPUT (ours)
  ipv4 nat ISTIO_OUTPUT (ours)
    -A ISTIO_OUTPUT -o lo -s 127.0.0.6/32 -j RETURN (ours)
    -A ISTIO_OUTPUT -o lo ! -d 127.0.0.1/32 -p tcp ! --dport 15008 -m owner --uid-owner 1337 -j ISTIO_IN_REDIRECT (ours)
    -A ISTIO_OUTPUT -o lo -m owner ! --uid-owner 1337 -j RETURN (ours)
    -A ISTIO_OUTPUT -m owner --uid-owner 1337 -j RETURN (ours)
    -A ISTIO_OUTPUT -o lo ! -d 127.0.0.1/32 -p tcp ! --dport 15008 -m owner --gid-owner 1337 -j ISTIO_IN_REDIRECT (ours)
    -A ISTIO_OUTPUT -o lo -m owner ! --gid-owner 1337 -j RETURN (ours)
    -A ISTIO_OUTPUT -m owner --gid-owner 1337 -j RETURN (ours)
    -A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN (ours)
    -A ISTIO_OUTPUT -d 10.0.0.0/8 -j ISTIO_REDIRECT (ours)
  ipv4 filter INPUT
    -A INPUT -p udp -j DROP
)");
  EXPECT_EQ("\n" + chains_of(after_apply(wanted, BackendKind::iptables_nft, true, live)), R"(
iptables-legacy
  ipv4 nat PREROUTING
  ipv4 nat OUTPUT
    -A OUTPUT -p tcp --dport 22 -j ACCEPT
  ipv4 filter INPUT
    -A INPUT -p udp -j DROP
iptables-nft
  ipv4 nat ISTIO_INBOUND (ours)
    -A ISTIO_INBOUND -p tcp --dport 15008 -j RETURN (ours)
    -A ISTIO_INBOUND -p tcp --dport 80 -j ISTIO_IN_REDIRECT (ours)
  ipv4 nat ISTIO_REDIRECT (ours)
    -A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001 (ours)
  ipv4 nat ISTIO_IN_REDIRECT (ours)
    -A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006 (ours)
  ipv4 nat PREROUTING
    -A PREROUTING -p tcp -j ISTIO_INBOUND (ours)
  ipv4 nat OUTPUT
    -A OUTPUT -p tcp --dport 22 -j ACCEPT
    -A OUTPUT -j ISTIO_OUTPUT (ours)
  ipv4 nat ISTIO_OUTPUT (ours)
    -A ISTIO_OUTPUT -o lo -s 127.0.0.6/32 -j RETURN (ours)
    -A ISTIO_OUTPUT -o lo ! -d 127.0.0.1/32 -p tcp ! --dport 15008 -m owner --uid-owner 1337 -j ISTIO_IN_REDIRECT (ours)
    -A ISTIO_OUTPUT -o lo -m owner ! --uid-owner 1337 -j RETURN (ours)
    -A ISTIO_OUTPUT -m owner --uid-owner 1337 -j RETURN (ours)
    -A ISTIO_OUTPUT -o lo ! -d 127.0.0.1/32 -p tcp ! --dport 15008 -m owner --gid-owner 1337 -j ISTIO_IN_REDIRECT (ours)
    -A ISTIO_OUTPUT -o lo -m owner ! --gid-owner 1337 -j RETURN (ours)
    -A ISTIO_OUTPUT -m owner --gid-owner 1337 -j RETURN (ours)
    -A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN (ours)
    -A ISTIO_OUTPUT -j ISTIO_REDIRECT (ours)
  ipv4 filter INPUT
    -A INPUT -p udp -j DROP
)");
  EXPECT_EQ("\n" + chains_of(after_apply(wanted, BackendKind::nftables, false, {live.front()})), R"(
iptables-legacy
  ipv4 nat PREROUTING
  ipv4 nat OUTPUT
    -A OUTPUT -p tcp --dport 22 -j ACCEPT
  ipv4 filter INPUT
    -A INPUT -p udp -j DROP
nftables
  ipv4, ipv6 nat ISTIO_INBOUND (ours)
    -A ISTIO_INBOUND -p tcp --dport 15008 -j RETURN (ours)
    -A ISTIO_INBOUND -p tcp -j ISTIO_IN_REDIRECT (ours)
  ipv4, ipv6 nat ISTIO_REDIRECT (ours)
    -A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001 (ours)
  ipv4, ipv6 nat ISTIO_IN_REDIRECT (ours)
    -A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006 (ours)
  ipv4, ipv6 nat PREROUTING
    -A PREROUTING -p tcp -j ISTIO_INBOUND (ours)
  ipv4, ipv6 nat OUTPUT
    -A OUTPUT -j ISTIO_OUTPUT (ours)
  ipv4, ipv6 nat ISTIO_OUTPUT (ours)
    -A ISTIO_OUTPUT -s 127.0.0.6/32 -o lo -j RETURN (ours)
    -A ISTIO_OUTPUT ! -d 127.0.0.1/32 -o lo -p tcp ! --dport 15008 -m owner --uid-owner 1337 -j ISTIO_IN_REDIRECT (ours)
    -A ISTIO_OUTPUT -o lo -m owner ! --uid-owner 1337 -j RETURN (ours)
    -A ISTIO_OUTPUT -m owner --uid-owner 1337 -j RETURN (ours)
    -A ISTIO_OUTPUT ! -d 127.0.0.1/32 -o lo -p tcp ! --dport 15008 -m owner --gid-owner 1337 -j ISTIO_IN_REDIRECT (ours)
    -A ISTIO_OUTPUT -o lo -m owner ! --gid-owner 1337 -j RETURN (ours)
    -A ISTIO_OUTPUT -m owner --gid-owner 1337 -j RETURN (ours)
    -A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN (ours)
    -A ISTIO_OUTPUT -d 10.0.0.0/8 -j ISTIO_REDIRECT (ours)
)");
  EXPECT_EQ("\n" + chains_of(after_apply({}, BackendKind::iptables_nft, false, live)), R"(
iptables-legacy
  ipv4 nat PREROUTING
  ipv4 nat OUTPUT
    -A OUTPUT -p tcp --dport 22 -j ACCEPT
  ipv4 filter INPUT
    -A INPUT -p udp -j DROP
iptables-nft
  ipv4 nat ISTIO_INBOUND (ours)
  ipv4 nat ISTIO_REDIRECT (ours)
  ipv4 nat ISTIO_IN_REDIRECT (ours)
  ipv4 nat PREROUTING
  ipv4 nat OUTPUT
    -A OUTPUT -p tcp --dport 22 -j ACCEPT
  ipv4 nat ISTIO_OUTPUT (ours)
  ipv4 filter INPUT
    -A INPUT -p udp -j DROP
)");
}

}  // namespace
}  // namespace sidetrack
