// SPDX-License-Identifier: GPL-2.0-or-later
// DNS capture as Istio 1.8 to 1.24 wrote it, in the built-in chains: `explain` says of real queries whether they are
// answered.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

constexpr std::string_view redirected = "REDIRECT --to-ports 15053";
constexpr std::string_view translated = "DNAT --to-destination 127.0.0.1:15053";

struct RuleSet {
  const char* name;
  bool by_address = true;  // only queries to the server of resolv.conf
  std::string_view target = redirected;
  bool by_gid = true;                // the proxy's gid as well as its uid
  bool source_translated = false;    // 1.8
  const char* zone_of_answer = "2";  // of what the proxy answers; nullptr: no rule
  bool zones = true;                 // 1.8 had none at first
  const char* chain = "OUTPUT";      // with the rules about UDP; 1.23, 1.24: ISTIO_OUTPUT
};

const RuleSet rule_sets[] = {
    {.name = "istio_1_22"},
    {.name = "istio_1_24", .chain = "ISTIO_OUTPUT"},
    {.name = "any_server_of_istio_1_24", .by_address = false, .chain = "ISTIO_OUTPUT"},
    {.name = "uid_alone", .by_gid = false},
    {.name = "any_server", .by_address = false},
    {.name = "translated", .target = translated},
    {.name = "any_server_translated", .by_address = false, .target = translated},
    {.name = "istio_1_8", .by_address = false, .target = translated, .source_translated = true},
    {.name = "istio_1_8_without_zones",
     .by_address = false,
     .target = translated,
     .source_translated = true,
     .zones = false},
    // Nobody's, and no answer arrives.
    {.name = "answers_in_no_zone", .zone_of_answer = nullptr},
    {.name = "answers_in_another_zone", .zone_of_answer = "3"},
    {.name = "answers_in_no_zone_translated", .target = translated, .zone_of_answer = nullptr},
};

std::string text_of(const RuleSet& set, const std::string& server) {
  const std::string to = set.by_address ? fmt::format("-d {} ", server) : "";
  const std::string from = set.by_address ? fmt::format("-s {} ", server) : "";
  std::string raw = "*raw\n";
  std::string nat = "*nat\n:ISTIO_OUTPUT - [0:0]\n-A OUTPUT -p tcp -j ISTIO_OUTPUT\n";
  if (std::string_view(set.chain) != "OUTPUT") {
    raw += ":ISTIO_OUTPUT - [0:0]\n-A OUTPUT -p udp -j ISTIO_OUTPUT\n";
    nat += "-A OUTPUT -p udp -j ISTIO_OUTPUT\n";
  }
  for (const char* owner : {"--uid-owner 1337", "--gid-owner 1337"}) {
    if (!set.by_gid && std::string_view(owner).starts_with("--gid")) continue;
    nat += fmt::format("-A ISTIO_OUTPUT -m owner {} -j RETURN\n", owner);
    nat += fmt::format("-A {} -p udp --dport 53 -m owner {} -j RETURN\n", set.chain, owner);
    raw += fmt::format("-A {} -p udp --dport 53 -m owner {} -j CT --zone 1\n", set.chain, owner);
    if (set.zone_of_answer != nullptr)
      raw +=
          fmt::format("-A {} -p udp --sport 15053 -m owner {} -j CT --zone {}\n", set.chain, owner, set.zone_of_answer);
  }
  nat += fmt::format("-A {} -p udp --dport 53 {}-j {}\n", set.chain, to, set.target);
  if (set.source_translated) nat += "-A POSTROUTING -p udp --dport 15053 -j SNAT --to-source 127.0.0.1\n";
  raw += fmt::format("-A {} -p udp --dport 53 {}-j CT --zone 2\n", set.chain, to);
  raw += fmt::format("-A PREROUTING -p udp --sport 53 {}-j CT --zone 1\n", from);
  return (set.zones ? raw + "COMMIT\n" : "") + nat + "COMMIT\n";
}

class OldDnsRules : public KernelTest, public ::testing::WithParamInterface<std::tuple<RuleSet, const char*>> {
 protected:
  [[nodiscard]] const RuleSet& rules() const { return std::get<RuleSet>(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(, OldDnsRules,
                         ::testing::Combine(::testing::ValuesIn(rule_sets), ::testing::Values("legacy", "nft")),
                         [](const auto& tested) {
                           return fmt::format("{}_{}", std::get<RuleSet>(tested.param).name,
                                              std::get<const char*>(tested.param));
                         });

TEST_P(OldDnsRules, AreExplainedAsTheyAnswer) {
  const Pod pod;
  const Addresses& at = addresses(Family::ipv4);
  pod.ns().must({fmt::format("iptables-{}-restore", std::get<const char*>(GetParam()))},
                text_of(rules(), std::string(at.dns)));
  for (const Actor& actor : {as_app, as_proxy, as_proxy_user, as_proxy_group}) {
    for (const std::string_view server : {at.dns, at.other_dns}) {
      const Landing landing = pod.connect(actor, {.to = Endpoint(server, 53),
                                                  .protocol = Protocol::udp,
                                                  .from = {},
                                                  .patience = std::chrono::milliseconds(1000)});
      const Output output =
          pod.ns().program({program_under_test(), "explain", "--json", "out", "udp", fmt::format("{}:53", server),
                            "--uid", std::to_string(actor.identity.uid), "--gid", std::to_string(actor.identity.gid)});
      ASSERT_EQ(output.exit_code, 0) << output.err;
      const auto outcome = nlohmann::json::parse(output.out).at("outcome");
      const bool answered = landing.role != Role::no_answer && landing.oddity.empty();
      EXPECT_EQ(outcome.value("answers", "arrive"), answered ? "arrive" : "lost") << landing << "\n"
                                                                                  << outcome.at("sentence");
      const bool captured = outcome.at("kind") == "lands";
      if (answered) {
        EXPECT_EQ(landing.role, captured ? Role::dns : Role::outside) << outcome.at("sentence");
      }
      const bool is_of_proxy = actor.identity.uid == 1337 || (rules().by_gid && actor.identity.gid == 1337);
      EXPECT_EQ(captured, !is_of_proxy && (!rules().by_address || server == at.dns)) << outcome.at("sentence");
      const bool is_loss = rules().zones && (rules().zone_of_answer == nullptr || *rules().zone_of_answer != '2');
      EXPECT_EQ(answered, !captured || !is_loss);
    }
  }
}

// Without the proxy the pod would have no DNS. What is not Istio's stays.
TEST_P(OldDnsRules, AreRemovedAndReplaced) {
  const bool is_istios = rules().target == redirected || rules().source_translated;
  if (!is_istios || rules().zone_of_answer == nullptr || *rules().zone_of_answer != '2') return;
  const std::string backend = std::get<const char*>(GetParam());
  const std::string others =
      "*raw\n-A OUTPUT -p udp --dport 5353 -j CT --zone 2\nCOMMIT\n"
      "*nat\n-A OUTPUT -p udp --dport 53 -m owner --uid-owner 7 -j ACCEPT\n"
      "-A OUTPUT -d 192.0.2.1 -p udp --dport 53 -j REDIRECT --to-ports 5353\nCOMMIT\n";
  const auto load = [&](const Namespace& pod, const std::string& text) {
    pod.must({fmt::format("iptables-{}-restore", backend), "--noflush"}, text);
  };
  const auto saved = [&](const Namespace& pod) {
    return pod.must({"bash", "-c", fmt::format("iptables-{}-save | grep '^-A' | sort", backend)});
  };
  const Pod with_others;
  load(with_others.ns(), others);
  for (const bool replaces : {false, true}) {
    const Pod pod;
    load(pod.ns(), text_of(rules(), std::string(addresses(Family::ipv4).dns)));
    load(pod.ns(), others);
    std::vector<std::string> words{program_under_test(), "clean"};
    if (replaces) words = {program_under_test(), "apply", "--ip-families", "ipv4"};
    pod.ns().must(words);
    if (!replaces) {
      EXPECT_EQ(saved(pod.ns()), saved(with_others.ns()));
    } else {
      EXPECT_EQ(saved(pod.ns()).find("15053"), std::string::npos) << saved(pod.ns());
    }
  }
}

// Of one kind alone it may be another program's.
TEST_F(KernelTest, ARedirectOfDnsAloneIsNotIstios) {
  const Pod pod;
  pod.ns().must(
      {"iptables-nft-restore"},
      "*nat\n:ISTIO_OUTPUT - [0:0]\n-A OUTPUT -p tcp -j ISTIO_OUTPUT\n-A ISTIO_OUTPUT -m owner --uid-owner 1337 -j "
      "RETURN\n-A OUTPUT -p udp --dport 53 -j REDIRECT --to-ports 15053\nCOMMIT\n");
  pod.ns().must({program_under_test(), "clean"});
  const std::string left = pod.ns().must({"iptables-nft-save"});
  EXPECT_NE(left.find("15053"), std::string::npos);
  EXPECT_EQ(left.find("ISTIO"), std::string::npos);
}

}  // namespace
}  // namespace sidetrack::netns
