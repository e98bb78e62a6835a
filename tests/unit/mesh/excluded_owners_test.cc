// SPDX-License-Identifier: GPL-2.0-or-later
// The rules of --exclude-uids, --exclude-gids, --exclude-uid-ports and --capture-udp; and that a rule that is read back
// says by what it was asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "mesh/catalogue.h"
#include "mesh/describe.h"
#include "mesh/plan.h"
#include "rule/fold.h"
#include "rule/iptables.h"
#include "unit/usual_config.h"

namespace sidetrack {
namespace {

using ::testing::ElementsAre;
using ::testing::IsSupersetOf;

std::vector<std::string> lines(const Plan& plan, Table table, std::string_view word, Family family = Family::ipv4) {
  std::vector<std::string> result;
  for (const Rule& rule : plan.ruleset.rules) {
    const std::string text = iptables_words(rule);
    if (rule.table == table && rule.families.contains(family) && text.find(word) != std::string::npos)
      result.push_back(text);
  }
  return result;
}

HostFacts with_servers() {
  HostFacts facts = dual_stack();
  facts.dns_servers = {*Address::parse("10.96.0.10"), *Address::parse("fd00::10")};
  return facts;
}

Config excluding() {
  Config config = usual();
  config.outbound_ranges.all = true;
  config.exclude_uids = {101, {1000, 1999}};
  config.exclude_gids = {5};
  config.exclude_uid_ports = {{102, {443, {8000, 8100}}}};
  config.bypass_cgroups = {{"kubepods/pod1"}};
  return config;
}

TEST(ExcludedOwners, AreReturnedBehindTheProxysOwnRules) {
  const Plan made = plan(excluding(), {});
  const std::vector<std::string> expected = {
      "-A ISTIO_OUTPUT -p tcp -m owner --uid-owner 101 -j RETURN",
      "-A ISTIO_OUTPUT -p udp -m owner --uid-owner 101 -j RETURN",
      "-A ISTIO_OUTPUT -p tcp -m owner --uid-owner 1000-1999 -j RETURN",
      "-A ISTIO_OUTPUT -p udp -m owner --uid-owner 1000-1999 -j RETURN",
      "-A ISTIO_OUTPUT -p tcp -m owner --gid-owner 5 -j RETURN",
      "-A ISTIO_OUTPUT -p udp -m owner --gid-owner 5 -j RETURN",
      "-A ISTIO_OUTPUT -m cgroup --path kubepods/pod1 -j RETURN",
      "-A ISTIO_OUTPUT -p tcp --dport 443 -m owner --uid-owner 102 -j RETURN",
      "-A ISTIO_OUTPUT -p udp --dport 443 -m owner --uid-owner 102 -j RETURN",
      "-A ISTIO_OUTPUT -p tcp --dport 8000:8100 -m owner --uid-owner 102 -j RETURN",
      "-A ISTIO_OUTPUT -p udp --dport 8000:8100 -m owner --uid-owner 102 -j RETURN"};
  const std::vector<std::string> all = lines(made, Table::nat, "-A ISTIO_OUTPUT ");
  const auto found = std::ranges::search(all, expected);
  ASSERT_EQ(found.size(), expected.size());
  EXPECT_EQ(*(found.begin() - 1), "-A ISTIO_OUTPUT -m owner --gid-owner 1337 -j RETURN");
  EXPECT_TRUE(lines(made, Table::raw, "").empty());
}

TEST(ExcludedOwners, QueriesAreInTheZoneOfTheirAnswers) {
  Config config = excluding();
  config.redirect_dns = true;
  EXPECT_THAT(
      lines(plan(config, with_servers()), Table::raw, "owner 101"),
      ElementsAre("-A ISTIO_OUTPUT_DNS -o lo -p udp --dport 53 -m owner --uid-owner 101 -j RETURN",
                  "-A ISTIO_OUTPUT_DNS ! -o lo -p udp --dport 53 -d 10.96.0.10/32 -m owner --uid-owner 101 -j CT "
                  "--zone 1"));
  EXPECT_THAT(lines(plan(config, with_servers()), Table::raw, "cgroup"),
              ElementsAre("-A ISTIO_OUTPUT_DNS -o lo -p udp --dport 53 -m cgroup --path kubepods/pod1 -j RETURN",
                          "-A ISTIO_OUTPUT_DNS ! -o lo -p udp --dport 53 -d 10.96.0.10/32 -m cgroup --path "
                          "kubepods/pod1 -j CT --zone 1"));
  EXPECT_TRUE(lines(plan(config, with_servers()), Table::raw, "owner 102").empty());
  config.exclude_uid_ports = {{102, {{50, 60}}}};
  config.capture_all_dns = true;
  EXPECT_THAT(lines(plan(config, with_servers()), Table::raw, "owner 102", Family::ipv6),
              ElementsAre("-A ISTIO_OUTPUT_DNS -o lo -p udp --dport 53 -m owner --uid-owner 102 -j RETURN",
                          "-A ISTIO_OUTPUT_DNS ! -o lo -p udp --dport 53 -m owner --uid-owner 102 -j CT --zone 1"));
}

TEST(CapturedUdp, GoesToTheTransparentListener) {
  Config config = usual();
  config.mode = Mode::tproxy;
  config.capture_udp = {443, {8000, 8100}};
  const Plan made = plan(config, {});
  EXPECT_THAT(
      lines(made, Table::mangle, "-p udp"),
      ElementsAre("-A ISTIO_TPROXY ! -d 127.0.0.1/32 -p udp -j TPROXY --tproxy-mark 1337/0xffffffff --on-port 15006",
                  "-A PREROUTING -p udp -j ISTIO_INBOUND", "-A ISTIO_INBOUND -i lo -p udp -j RETURN",
                  "-A ISTIO_INBOUND -p udp -m conntrack --ctdir REPLY -j RETURN",
                  "-A ISTIO_INBOUND -p udp --dport 443 -j ISTIO_TPROXY",
                  "-A ISTIO_INBOUND -p udp --dport 8000:8100 -j ISTIO_TPROXY"));
  EXPECT_EQ(made.routing.policy_rules.size(), 1U);  // without -b, too
  config.mode = Mode::redirect;
  EXPECT_TRUE(lines(plan(config, {}), Table::mangle, "").empty());
}

// A rule that is read has no origin: its shape tells.
TEST(ExcludedOwners, AreKnownByTheirShape) {
  Config config = excluding();
  config.exclude_uid_ports.push_back({103, {53}});
  config.mode = Mode::tproxy;
  config.inbound_ports.all = true;
  config.capture_udp = {443};
  config.redirect_dns = true;
  for (const bool all : {false, true}) {
    config.capture_all_dns = all;
    const Plan made = plan(config, with_servers());
    for (const Ruleset& ruleset : {made.ruleset, fold(made.ruleset)}) {
      std::vector<std::string> flags;
      for (const Rule& rule : ruleset.rules) {
        Rule read = rule;
        read.origin = {};
        const Row* row = row_of(read);
        ASSERT_NE(row, nullptr) << iptables_words(rule);
        flags.push_back(describe(read).option);
        // Rules of the proxy's ids are taken for the proxy's.
        if (rule.origin.rule == MeshRule::outbound_excluded_owner || rule.origin.rule == MeshRule::dns_excluded_query ||
            rule.origin.rule == MeshRule::outbound_excluded_owner_port ||
            rule.origin.rule == MeshRule::outbound_bypassing_cgroup ||
            rule.origin.rule == MeshRule::dns_excluded_over_lo || rule.origin.rule == MeshRule::inbound_udp_tproxy) {
          EXPECT_EQ(row->id, rule.origin.rule) << iptables_words(rule);
        }
      }
      EXPECT_THAT(flags, IsSupersetOf({"--exclude-uids", "--exclude-gids", "--exclude-uid-ports", "--bypass-cgroup",
                                       "--capture-udp"}));
    }
  }
}

}  // namespace
}  // namespace sidetrack
