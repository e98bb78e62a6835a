// SPDX-License-Identifier: GPL-2.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "apply/diff.h"
#include "render/render.h"
#include "unit/fake_backend.h"
#include "unit/usual_config.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

Live programmed(const Ruleset& ruleset) {
  FakeBackend backend;
  backend.replace(backend.read(), ruleset);
  return backend.live;
}

TEST(DiffText, IsUnifiedAndKeepsToTheNeighbourhood) {
  Config config = usual();
  const Live live = programmed(plan(config, {}).ruleset);
  config.outbound_exclude_ranges = {*AddressRange::parse("10.0.0.0/8")};
  config.tunnel_port = 15009;
  EXPECT_EQ(
      diff_text({{diff(live, plan(config, {}).ruleset)}, {}, {}}, false),
      "--- iptables-legacy, live\n"
      "+++ iptables-legacy, requested\n"
      "@@ nat ISTIO_INBOUND (ipv4) @@\n"
      "--A ISTIO_INBOUND -p tcp --dport 15008 -j RETURN\n"
      "+-A ISTIO_INBOUND -p tcp --dport 15009 -j RETURN\n"
      "@@ nat ISTIO_OUTPUT (ipv4) @@\n"
      " -A ISTIO_OUTPUT -o lo -s 127.0.0.6/32 -j RETURN\n"
      "--A ISTIO_OUTPUT -o lo ! -d 127.0.0.1/32 -p tcp ! --dport 15008 -m owner --uid-owner 1337 -j ISTIO_IN_REDIRECT\n"
      "+-A ISTIO_OUTPUT -o lo ! -d 127.0.0.1/32 -p tcp ! --dport 15009 -m owner --uid-owner 1337 -j ISTIO_IN_REDIRECT\n"
      " -A ISTIO_OUTPUT -o lo -m owner ! --uid-owner 1337 -j RETURN\n"
      " -A ISTIO_OUTPUT -m owner --uid-owner 1337 -j RETURN\n"
      "--A ISTIO_OUTPUT -o lo ! -d 127.0.0.1/32 -p tcp ! --dport 15008 -m owner --gid-owner 1337 -j ISTIO_IN_REDIRECT\n"
      "+-A ISTIO_OUTPUT -o lo ! -d 127.0.0.1/32 -p tcp ! --dport 15009 -m owner --gid-owner 1337 -j ISTIO_IN_REDIRECT\n"
      " -A ISTIO_OUTPUT -o lo -m owner ! --gid-owner 1337 -j RETURN\n"
      " -A ISTIO_OUTPUT -m owner --gid-owner 1337 -j RETURN\n"
      " -A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN\n"
      "+-A ISTIO_OUTPUT -d 10.0.0.0/8 -j RETURN\n");
}

// Of each table IPv4 comes first.
TEST(DiffText, ShowsTheFamiliesInTheirOrder) {
  const Ruleset asked = plan(usual(), dual_stack()).ruleset;
  const std::string text = diff_text({{diff(Live{}, asked)}, {}, {}}, false);
  const auto at = [&](const char* heading) { return text.find(heading); };
  EXPECT_LT(at("@@ nat ISTIO_INBOUND (ipv4) @@"), at("@@ nat ISTIO_INBOUND (ipv6) @@")) << text;
  EXPECT_LT(at("@@ nat OUTPUT (ipv4) @@"), at("@@ nat OUTPUT (ipv6) @@"));
  EXPECT_NE(at("@@ nat ISTIO_INBOUND (ipv6) @@"), std::string::npos);
}

TEST(DiffText, OfEqualRulesIsEmpty) {
  const Ruleset asked = plan(injected(), {}).ruleset;
  EXPECT_EQ(diff_text({{diff(programmed(asked), asked)}, {}, {}}, true), "");
}

TEST(DiffText, ShowsRoutes) {
  PodDiff pod_diff;
  pod_diff.missing.policy_rules = {fwmark_rule(Family::ipv4, 1337, 133)};
  pod_diff.extra.loopback_addresses = {*Address::parse("::6")};
  EXPECT_FALSE(pod_diff.equal());
  EXPECT_EQ(diff_text(pod_diff, false),
            "--- routing, live\n"
            "+++ routing, requested\n"
            "-ip -6 addr add ::6/128 dev lo\n"
            "+ip rule add fwmark 1337 lookup 133\n");
}

// Two lines are never alike: what differs is said, be it the families or what is asked before.
TEST(DiffText, SaysWhatDiffersInEqualWords) {
  Live live = as_live(plan(injected(), dual_stack()).ruleset, BackendKind::nftables);
  const std::string narrower = diff_text({{diff(live, plan(injected(), {}).ruleset)}, {}, {}}, false);
  EXPECT_THAT(narrower, ::testing::HasSubstr("--A PREROUTING -p tcp -j ISTIO_INBOUND   # ipv4, ipv6\n"
                                             "+-A PREROUTING -p tcp -j ISTIO_INBOUND   # ipv4\n"));
  PodDiff behind;
  behind.missing.policy_rules = {placed(fwmark_rule(Family::ipv4, 1337, 133), 100, true)};
  behind.extra.policy_rules = {placed(fwmark_rule(Family::ipv4, 1337, 133), 100, false)};
  EXPECT_EQ(diff_text(behind, false),
            "--- routing, live\n"
            "+++ routing, requested\n"
            "-ip rule add pref 100 fwmark 1337 lookup 133   # behind another program's rule that may decide first\n"
            "+ip rule add pref 100 fwmark 1337 lookup 133\n");
}

Rule to_port(std::uint16_t port, Families families = Family::ipv4) {
  return {families, Table::nat, "C", {PortMatch{End::destination, {port}, false}}, Verdict::accept, {}, {}};
}

std::string text_of(ChainDiff chain, bool color = false) {
  chain.name = "C";
  PodDiff pod_diff;
  pod_diff.backends = {{BackendKind::nftables, {std::move(chain)}, {}, {}}};
  const std::string text = diff_text(pod_diff, color);
  return text.substr(text.find("@@"));
}

// As `diff -u` has it: three lines around a change, of the others that there are some.
TEST(DiffText, KeepsThreeLinesAroundAChange) {
  using enum DiffLine::Kind;
  ChainDiff chain;
  chain.families = Family::ipv4;
  for (std::uint16_t port = 1; port <= 20; ++port) chain.lines.push_back({port == 7 ? missing : same, to_port(port)});
  chain.lines[13].kind = foreign;
  chain.lines[15].kind = extra;
  EXPECT_EQ(text_of(chain),
            "@@ nat C (ipv4) @@\n"
            " ...\n"
            " -A C --dport 4 -j ACCEPT\n"
            " -A C --dport 5 -j ACCEPT\n"
            " -A C --dport 6 -j ACCEPT\n"
            "+-A C --dport 7 -j ACCEPT\n"
            " -A C --dport 8 -j ACCEPT\n"
            " -A C --dport 9 -j ACCEPT\n"
            " -A C --dport 10 -j ACCEPT\n"
            " ...\n"
            " -A C --dport 13 -j ACCEPT\n"
            " -A C --dport 14 -j ACCEPT   # not ours\n"
            " -A C --dport 15 -j ACCEPT\n"
            "--A C --dport 16 -j ACCEPT\n"
            " -A C --dport 17 -j ACCEPT\n"
            " -A C --dport 18 -j ACCEPT\n"
            " -A C --dport 19 -j ACCEPT\n"
            " ...\n");
}

TEST(DiffText, SaysWhatAChainItselfIs) {
  ChainDiff chain;
  chain.families = Families::both();
  chain.missing = true;
  EXPECT_EQ(text_of(chain), "@@ nat C (ipv4, ipv6) @@\n+-N C\n");
  chain.missing = false;
  chain.extra = chain.drops = chain.dormant = true;
  EXPECT_EQ(text_of(chain),
            "@@ nat C (ipv4, ipv6) @@\n"
            "--N C\n"
            "--P C DROP\n"
            "-flags dormant   # its table: the kernel calls none of its chains\n");
  PodDiff tables;
  tables.backends = {{BackendKind::iptables_nft, {}, {}, {}}, {BackendKind::nftables, {}, {}, {"inet sidetrack"}}};
  EXPECT_EQ(diff_text(tables, false), "--- nftables, live\n+++ nftables, requested\n-add table inet sidetrack\n");
}

// Where nothing but the families differs they are said, of both lines.
TEST(DiffText, SaysTheFamiliesOfTwins) {
  using enum DiffLine::Kind;
  ChainDiff chain;
  chain.families = Families::both();
  chain.lines = {{extra, to_port(1, Family::ipv4)},   {missing, to_port(1, Families::both())},
                 {extra, to_port(2, Family::ipv4)},   {missing, to_port(2, Family::ipv4)},
                 {missing, to_port(3, Family::ipv6)}, {same, to_port(4, Family::ipv6)}};
  EXPECT_EQ(text_of(chain),
            "@@ nat C (ipv4, ipv6) @@\n"
            "--A C --dport 1 -j ACCEPT   # ipv4\n"
            "+-A C --dport 1 -j ACCEPT   # ipv4, ipv6\n"
            "--A C --dport 2 -j ACCEPT\n"
            "+-A C --dport 2 -j ACCEPT\n"
            "+-A C --dport 3 -j ACCEPT\n"
            " -A C --dport 4 -j ACCEPT\n");
  EXPECT_EQ(text_of(chain, true).substr(0, text_of(chain, true).find("# ipv4, ")),
            "@@ nat C (ipv4, ipv6) @@\033[0m\n"
            "\033[31m--A C --dport 1 -j ACCEPT   # ipv4\033[0m\n"
            "\033[32m+-A C --dport 1 -j ACCEPT   ");
}

// A rule shows where it stands, not how it came there.
TEST(DiffText, SaysNothingOfInsertions) {
  ChainDiff chain;
  chain.families = Family::ipv4;
  chain.lines = {{DiffLine::Kind::missing, to_port(1)}};
  chain.lines.front().rule.insert_at = 3;
  EXPECT_EQ(text_of(chain), "@@ nat C (ipv4) @@\n+-A C --dport 1 -j ACCEPT\n");
}

TEST(DiffText, ShowsAllRouting) {
  PodDiff pod_diff;
  pod_diff.missing.policy_rules = {fwmark_rule(Family::ipv4, 1, 2), placed(fwmark_rule(Family::ipv6, 3, 4), 5, false)};
  pod_diff.missing.local_routes = {local_default(Family::ipv4, 2)};
  pod_diff.extra.policy_rules = {fwmark_rule(Family::ipv6, 3, 4)};
  EXPECT_EQ(diff_text(pod_diff, true),
            "\033[31m--- routing, live\033[0m\n"
            "\033[32m+++ routing, requested\033[0m\n"
            "\033[31m-ip -6 rule add fwmark 3 lookup 4\033[0m\n"
            "\033[32m+ip rule add fwmark 1 lookup 2\033[0m\n"
            "\033[32m+ip -6 rule add pref 5 fwmark 3 lookup 4   # behind another program's rule that may decide "
            "first\033[0m\n"
            "\033[32m+ip route add local default dev lo table 2\033[0m\n");
}

TEST(DiffJson, HasEachField) {
  using enum DiffLine::Kind;
  ChainDiff chain;
  chain.families = Family::ipv4;
  chain.name = "C";
  chain.extra = chain.dormant = true;
  chain.lines = {{same, to_port(1)}, {missing, to_port(2)}, {extra, to_port(3)}, {foreign, to_port(4)}};
  ChainDiff other;
  other.families = Families::both();
  other.table = Table::mangle;
  other.name = "D";
  other.missing = other.drops = true;
  PodDiff pod_diff;
  pod_diff.backends = {{BackendKind::nftables, {chain, other}, {"beware"}, {"inet sidetrack"}},
                       {BackendKind::iptables_nft, {}, {}, {}}};
  pod_diff.missing.local_routes = {local_default(Family::ipv4, 2)};
  pod_diff.extra.policy_rules = {placed(fwmark_rule(Family::ipv6, 3, 4, 0xff), 5, false)};
  pod_diff.obstacles = {{"a rule", "a packet", "lands", "is dropped"}};
  pod_diff.lost_replies = {{"a query", "docker0", "another zone"}};
  pod_diff.backend = BackendKind::nftables;
  const std::string expected = R"({
    "equal": false,
    "obstacles": [{"rule": "a rule", "packet": "a packet", "planned": "lands", "instead": "is dropped"}],
    "lost_replies": [{"packet": "a query", "interface": "docker0", "why": "another zone"}],
    "backends": [
      {"backend": "nftables", "equal": false, "chains": [
        {"families": ["ipv4"], "table": "nat", "chain": "C", "missing": false, "extra": true, "policy_drop": false,
         "dormant": true, "rules": [{"kind": "same", "rule": "-A C --dport 1 -j ACCEPT"},
                                    {"kind": "missing", "rule": "-A C --dport 2 -j ACCEPT"},
                                    {"kind": "extra", "rule": "-A C --dport 3 -j ACCEPT"},
                                    {"kind": "foreign", "rule": "-A C --dport 4 -j ACCEPT"}]},
        {"families": ["ipv4", "ipv6"], "table": "mangle", "chain": "D", "missing": true, "extra": false,
         "policy_drop": true, "dormant": false, "rules": []}],
       "tables": ["inet sidetrack"], "warnings": ["beware"]},
      {"backend": "iptables-nft", "equal": true, "chains": [], "tables": [], "warnings": []}],
    "routing": {
      "missing": {"rules": [], "routes": [{"family": "ipv4", "type": "local", "to": "default", "dev": "lo", "table": 2}],
                  "addresses": []},
      "extra": {"rules": [{"family": "ipv6", "fwmark": 3, "lookup": 4, "fwmask": 255, "priority": 5}], "routes": [],
                "addresses": []}}})";
  EXPECT_EQ(nlohmann::json::parse(diff_json(pod_diff)), nlohmann::json::parse(expected));
}

TEST(DiffJson, SaysWhatEachLineIs) {
  const Ruleset asked = plan(usual(), {}).ruleset;
  EXPECT_NE(diff_json({{diff(Live{}, asked)}, {}, {}}).find("\"kind\": \"missing\""), std::string::npos);
  EXPECT_NE(diff_json({{diff(programmed(asked), asked)}, {}, {}}).find("\"equal\": true"), std::string::npos);
}

}  // namespace
}  // namespace sidetrack
