// SPDX-License-Identifier: GPL-2.0-or-later
// What every document of --json has in common.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "probe/probe.h"
#include "render/json_parts.h"
#include "render/render.h"
#include "render/show.h"
#include "unit/asking.h"
#include "unit/usual_config.h"

namespace sidetrack {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// Returns how many keys there are.
std::size_t expect_snake_case(const nlohmann::json& value) {
  std::size_t keys = 0;
  if (!value.is_structured()) return 0;
  for (const auto& [key, item] : value.items()) {
    if (value.is_object()) {
      EXPECT_THAT(key, MatchesRegex("[a-z][a-z0-9_]*"));
      ++keys;
    }
    keys += expect_snake_case(item);
  }
  return keys;
}

Diagnosis diagnosis() {
  Diagnosis made;
  made.host.capabilities = {{"CAP_NET_ADMIN", true, true}, {"CAP_NET_RAW", false, true}};
  made.host.user_namespace = {true, true, {{0, 0, 4294967295}}, {{0, 0, 4294967295}}};
  made.backends.resize(1);
  made.backends[0].features = {
      {"TPROXY, tproxy", "TPROXY", "-m TPROXY fails", false, {}, "the kernel lacks it", "modprobe it"}};
  made.legacy_tables = {"nat (ipv4)"};
  made.nf_tables = {"ip nat"};
  made.routing.policy_rules = {fwmark_rule(Family::ipv4, 1337, 133)};
  return made;
}

PodDiff pod_diff(const Plan& plan) {
  const Live live = as_live(plan.ruleset, BackendKind::iptables_nft);
  PodDiff made;
  made.backends = {diff(live, {})};
  made.missing = {{placed(fwmark_rule(Family::ipv4, 1337, 133), 100, false)},
                  {local_default(Family::ipv4, 133)},
                  {*Address::parse("::6")}};
  made.obstacles = {{"rule 1 of filter OUTPUT: -A OUTPUT -j DROP", "out tcp 192.0.2.1:80", "lands", "dropped"}};
  return made;
}

TEST(Json, HasKeysInSnakeCase) {
  const Config config = injected();
  const Plan plan = sidetrack::plan(config, dual_stack());
  const PodDiff compared = pod_diff(plan);
  ProbeResult failed{"outbound tcp ipv4", ProbeResult::Verdict::failed, "lost", std::chrono::milliseconds(1), {}, {}};
  failed.rules = plan.ruleset.rules;
  const Live live[] = {as_live(plan.ruleset, BackendKind::nftables)};
  const std::vector<Obstacle> obstacles{{"rule", "packet", "planned", "instead"}};
  const std::pair<const char*, std::string> documents[] = {
      {"render", json(plan, config)},
      {"doctor", diagnosis_json(diagnosis())},
      {"diff", diff_json(compared)},
      {"verify --probe", probe_json({failed}, &compared)},
      {"verify --probe, unprivileged", probe_json({failed}, nullptr)},
      {"show", show_json(live, compared.missing, {.obstacles = obstacles})},
      {"explain", json(ask("-m TPROXY -i * -b *", "in tcp :80", BackendKind::iptables_nft))},
  };
  for (const auto& [name, document] : documents) {
    SCOPED_TRACE(name);
    EXPECT_GT(expect_snake_case(nlohmann::json::parse(document)), 4U);
  }
}

// What fits into 120 columns is one line; a rule and a list of words always are.
TEST(Json, BreaksWhatDoesNotFit) {
  const auto text = [](std::size_t length) { return std::string(length, 'x'); };
  const auto of = [&](std::size_t length) { return dumped(Json{{"a b", {{"c", text(length)}}}}); };
  // {"a b": {"c": "…"}}
  EXPECT_EQ(of(120 - 18), "{\"a b\": {\"c\": \"" + text(120 - 18) + "\"}}\n");
  EXPECT_EQ(of(121 - 18), "{\n  \"a b\": {\"c\": \"" + text(121 - 18) + "\"}\n}\n");
  EXPECT_EQ(of(120 - 11), "{\n  \"a b\": {\"c\": \"" + text(120 - 11) + "\"}\n}\n");
  EXPECT_EQ(of(120 - 10), "{\n  \"a b\": {\n    \"c\": \"" + text(120 - 10) + "\"\n  }\n}\n");
  const std::string long_text = text(150);
  EXPECT_EQ(dumped(Json{{"rules", {{{"rule", long_text}, {"n", 1}}, {{"other", long_text}}}}}),
            "{\n  \"rules\": [\n    {\"rule\": \"" + long_text + "\", \"n\": 1},\n    {\n      \"other\": \"" +
                long_text + "\"\n    }\n  ]\n}\n");
  EXPECT_EQ(dumped(Json::array({long_text, 1, nullptr})), "[\"" + long_text + "\", 1, null]\n");
  EXPECT_EQ(dumped(Json::array({long_text + " a", 1})), "[\n  \"" + long_text + " a\",\n  1\n]\n");
  EXPECT_EQ(dumped(Json::array()), "[]\n");
  EXPECT_EQ(dumped(Json{{"a", {1, 2}}}, Lines::one), "{\"a\":[1,2]}\n");
  EXPECT_EQ(dumped(Json{{"a", "\xff\x1b"}}, Lines::one), "{\"a\":\"\\\\xff\\u001b\"}\n");
}

TEST(Json, HasAListOfWordsOnOneLine) {
  Config config = injected();
  config.inbound_exclude_ports.clear();
  std::string ports;
  for (std::uint16_t port = 20000; port < 20050; ++port) {
    config.inbound_exclude_ports.push_back(port);
    ports += (ports.empty() ? "" : ", ") + std::to_string(port);
  }
  EXPECT_THAT(json(plan(config, dual_stack()), config), HasSubstr("\"istio_local_exclude_ports\": [" + ports + "],\n"));
}

}  // namespace
}  // namespace sidetrack
