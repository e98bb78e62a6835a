// SPDX-License-Identifier: GPL-2.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evaluate/explain.h"
#include "render/render.h"
#include "state/diff.h"
#include "unit/fake_backend.h"
#include "unit/usual_config.h"

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
  Comparison comparison;
  comparison.missing.policy_rules = {{Family::ipv4, 1337, 133}};
  comparison.extra.loopback_addresses = {*Address::parse("::6")};
  EXPECT_FALSE(comparison.equal());
  EXPECT_EQ(diff_text(comparison, false),
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
  Comparison behind;
  behind.missing.policy_rules = {{Family::ipv4, 1337, 133, {}, 0xffffffff, 100}};
  behind.extra.policy_rules = {{Family::ipv4, 1337, 133, 100}};
  EXPECT_EQ(diff_text(behind, false),
            "--- routing, live\n"
            "+++ routing, requested\n"
            "-ip rule add pref 100 fwmark 1337 lookup 133   # behind another program's rule that may decide first\n"
            "+ip rule add pref 100 fwmark 1337 lookup 133\n");
}

TEST(DiffJson, SaysWhatEachLineIs) {
  const Ruleset asked = plan(usual(), {}).ruleset;
  EXPECT_NE(diff_json({{diff(Live{}, asked)}, {}, {}}).find("\"kind\": \"missing\""), std::string::npos);
  EXPECT_NE(diff_json({{diff(programmed(asked), asked)}, {}, {}}).find("\"equal\": true"), std::string::npos);
}

}  // namespace
}  // namespace sidetrack
