// SPDX-License-Identifier: GPL-2.0-or-later
// What nft lists, as text and as JSON, is read as the rules that the kernel holds, and asked alike: of every scenario
// of rules/, by nft and by iptables-nft, and of random rules of other programs. $SIDETRACK_SEED varies the latter,
// $SIDETRACK_TEXTS is how many there are.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "kernel/routes.h"
#include "render/render.h"
#include "rule/iptables.h"
#include "rule/ours.h"
#include "support/amount.h"
#include "support/foreign_rules.h"
#include "support/traffic.h"
#include "text/read_texts.h"
#include "text/text_pod.h"

namespace sidetrack::netns {
namespace {

using Strings = std::vector<std::string>;

std::string file(const std::filesystem::path& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

// Those with which nft is asked for its rules.
const Strings listings[] = {{"nft", "list", "ruleset"},
                            {"nft", "-a", "list", "ruleset"},
                            {"nft", "-s", "-nn", "list", "ruleset"},
                            {"nft", "-j", "list", "ruleset"}};

class FromNft : public KernelTest {
 protected:
  static std::vector<Live> in_kernel(const Namespace& ns) {
    std::vector<Live> live = ns.run(read_all);
    std::erase_if(live, [](const Live& each) { return !holds_rules(each); });
    return live;
  }

  static std::vector<Live> listed(const Namespace& ns, const Strings& words) {
    const Output output = ns.program(words);
    EXPECT_EQ(output.exit_code, 0) << output.err;
    const RulesText text{"report", fmt::format("$ {}\n{}", fmt::join(words, " "), output.out)};
    return read_texts({&text, 1}, false).live;
  }

  static void expect_same(const std::vector<Live>& live, const std::vector<Live>& text) {
    ASSERT_EQ(live.size(), text.size());
    for (std::size_t i = 0; i < live.size(); ++i) {
      ASSERT_EQ(live[i].backend, text[i].backend);
      ASSERT_EQ(live[i].chains.size(), text[i].chains.size());
      for (std::size_t chain = 0; chain < live[i].chains.size(); ++chain)
        expect_same(live[i].chains[chain], text[i].chains);
    }
  }

  static void expect_same(const LiveChain& chain, const std::vector<LiveChain>& all) {
    SCOPED_TRACE(fmt::format("{} {} {}", chain.table_name, name(chain.table), chain.name));
    const auto read = std::ranges::find_if(all, [&](const LiveChain& each) {
      return each.table_name == chain.table_name && each.table == chain.table && each.name == chain.name;
    });
    ASSERT_NE(read, all.end());
    EXPECT_EQ(read->families, chain.families);
    EXPECT_EQ(read->policy, chain.policy);
    EXPECT_EQ(read->dormant, chain.dormant);
    EXPECT_EQ(read->hook.has_value(), chain.hook.has_value());
    if (read->hook && chain.hook && chain.hook->device.empty()) {
      EXPECT_EQ(*read->hook, *chain.hook);
    }
    const bool has_all =
        std::ranges::all_of(chain.rules, [](const LiveRule& each) { return is_understood(each.rule); });
    if (has_all) {
      EXPECT_EQ(read->rules.size(), chain.rules.size());
    }
    for (std::size_t i = 0; i < std::min(read->rules.size(), chain.rules.size()); ++i)
      expect_same(chain.rules[i], read->rules[i]);
  }

  // nft 1.0.6 prints no comment of iptables, and sorts ports.
  static Rule as_nft_prints(Rule rule) {
    std::erase_if(rule.matches, [](const Match& each) { return std::holds_alternative<CommentMatch>(each); });
    for (Match& each : rule.matches) {
      if (auto* ports = std::get_if<PortMatch>(&each)) std::ranges::sort(ports->ports);
    }
    return rule;
  }

  // Of what nft does not print, nothing is known.
  static void expect_same(const LiveRule& live, const LiveRule& text) {
    const std::string words = iptables_words(live.rule) + "\n" + iptables_words(text.rule);
    if (!is_understood(text.rule)) {
      ++not_understood;
      EXPECT_FALSE(text.ours) << words;
      return;
    }
    EXPECT_TRUE(is_understood(live.rule)) << words;
    EXPECT_EQ(live.ours, text.ours) << words;
    if (std::holds_alternative<Reject>(live.rule.target)) {
      EXPECT_TRUE(std::holds_alternative<Reject>(text.rule.target)) << words;
    } else {
      EXPECT_TRUE(as_nft_prints(live.rule) == as_nft_prints(text.rule)) << words;
    }
    EXPECT_EQ(live.rule.origin.comment, text.rule.origin.comment);
    ++understood;
  }

  static GivenPod given(const PodView& pod) {
    GivenPod made;
    for (const Interface& each : pod.interfaces) {
      for (const InterfaceAddress& own : each.addresses) {
        if (each.name != "lo") made.addresses.push_back({each.name, own});
      }
    }
    made.routes = pod.routes;
    return made;
  }

  static inline std::size_t understood = 0, not_understood = 0;
};

TEST_F(FromNft, EveryScenarioIsAsInTheKernel) {
  std::size_t loaded = 0;
  for (const auto& scenario : std::filesystem::directory_iterator(SIDETRACK_SOURCE_DIR "/rules")) {
    if (!scenario.is_directory() || scenario.path().filename() == "bypass-cgroup") continue;  // its cgroup is not there
    SCOPED_TRACE(scenario.path().filename().string());
    for (const auto& [rules, program] :
         {std::pair("rules.nft", Strings{"nft", "-f", "-"}), std::pair("ipv4.rules", Strings{"iptables-nft-restore"}),
          std::pair("ipv6.rules", Strings{"ip6tables-nft-restore"})}) {
      const std::string text = file(scenario.path() / rules);
      if (text.empty()) continue;
      Namespace ns;
      const Output output = ns.program(program, text);
      ASSERT_EQ(output.exit_code, 0) << output.err;
      ++loaded;
      const std::vector<Live> live = in_kernel(ns);
      for (const Strings& words : listings) {
        SCOPED_TRACE(fmt::format("{} {}", rules, fmt::join(words, " ")));
        not_understood = 0;
        expect_same(live, listed(ns, words));
        // nft 1.0.6 prints the names alone of TPROXY, CT and, in JSON, of all extensions of iptables.
        if (program.front() == "nft") {
          EXPECT_EQ(not_understood, 0U);
        }
      }
    }
  }
  EXPECT_GT(loaded, 100U);
  EXPECT_GT(understood, 1000U);
}

TEST_F(FromNft, TypesOfAddressesAndPortsOfMapsAreAsInTheKernel) {
  constexpr const char* script =
      "table inet t { chain c { type nat hook prerouting priority -100; fib daddr type local tcp dport 80 accept; "
      "fib saddr . iif type { local, broadcast } drop; fib daddr type != unicast return; meta l4proto tcp redirect to "
      ":tcp dport map { 80 : 8080 }; }; }\n";
  const Namespace ns;
  ns.must({"nft", "-f", "-"}, script);
  const auto words = [](const std::vector<Live>& live) {
    std::string all;
    for (const LiveRule& each : live.front().chains.front().rules) all += iptables_words(each.rule) + "\n";
    return all;
  };
  const std::vector<Live> live = in_kernel(ns);
  ASSERT_EQ(live.size(), 1U);
  EXPECT_NE(words(live).find("--src-type LOCAL,BROADCAST --limit-iface-in"), std::string::npos) << words(live);
  for (const Strings& program : listings) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(program, " ")));
    const std::vector<Live> text = listed(ns, program);
    expect_same(live, text);
    EXPECT_EQ(words(live), words(text));
  }
  const RulesText text{"script", script};
  EXPECT_EQ(words(live), words(read_texts({&text, 1}, false).live));
}

// What nft is given, one command after the other, as its log or a script has it.
TEST_F(FromNft, CommandsAreAsInTheKernel) {
  constexpr const char* script =
      "add table inet istio-proxy-nat\n"
      "flush table inet istio-proxy-nat\n"
      "add chain inet istio-proxy-nat prerouting { type nat hook prerouting priority -100 ; }\n"
      "add chain inet istio-proxy-nat output { type nat hook output priority -100 ; policy accept ; }\n"
      "add chain inet istio-proxy-nat istio-output\n"
      "add chain inet istio-proxy-nat istio-in-redirect\n"
      "add set inet istio-proxy-nat s { type ipv4_addr ; flags interval ; elements = { 10.0.0.0/8, 192.0.2.1 } ; }\n"
      "add map inet istio-proxy-nat m { type inet_service : verdict ; }\n"
      "add element inet istio-proxy-nat s { 198.51.100.0/24 }; add element inet istio-proxy-nat m { 22 : accept,\n80 : "
      "jump istio-in-redirect }\n"
      "add rule inet istio-proxy-nat istio-in-redirect meta l4proto tcp redirect to :15006\n"
      "add rule inet istio-proxy-nat output jump istio-output\n"
      "add rule inet istio-proxy-nat istio-output skuid 1337 return\n"
      "add rule inet istio-proxy-nat istio-output ip daddr @s counter return comment \"near; or not\"\n"
      "add rule inet istio-proxy-nat istio-output oifname lo meta l4proto tcp ip daddr != 127.0.0.1/32 tcp dport != { "
      "53, "
      "15008 } skgid 1337 jump istio-in-redirect\n"
      "insert rule inet istio-proxy-nat istio-output index 1 tcp dport vmap @m\n"
      "insert rule inet istio-proxy-nat istio-output udp dport 53 accept\n"
      "add rule inet istio-proxy-nat istio-output index 0 meta mark 1 drop\n"
      "add rule inet istio-proxy-nat prerouting iifname { \"net1\", \"net2\" } return\n"
      "create table ip x; add chain ip x c { type filter hook input priority filter - 5; policy drop; }\n"
      "add rule ip x c accept; flush chain ip x c; add rule ip x c ct state established,related accept\n"
      "add table ip gone; add chain ip gone c; delete table ip gone\n"
      "add table ip nat; add chain ip nat out { type nat hook output priority 0; }\n"
      "add rule ip nat out meta skuid != 1337 tcp dport 80 redirect to :15001\n";
  const Namespace ns;
  ns.must({"nft", "-f", "-"}, script);
  const std::vector<Live> live = in_kernel(ns);
  const RulesText text{"script", script};
  const std::vector<Live> read = read_texts({&text, 1}, false).live;
  expect_same(live, read);
  const auto words = [](const std::vector<Live>& all) {
    std::set<std::string> words;
    for (const Live& each : all) {
      for (const LiveChain& chain : each.chains) {
        for (const LiveRule& rule : chain.rules) words.insert(iptables_words(rule.rule));
      }
    }
    return words;
  };
  EXPECT_EQ(words(live), words(read));
}

TEST_F(FromNft, RandomRulesAreAskedAsInTheKernel) {
  std::size_t decided = 0, asked = 0;
  for (unsigned index = 0; index < amount("SIDETRACK_TEXTS", 12); ++index) {
    Dice dice(5000 + index);
    Pod pod;
    std::vector<Foreign> rules = foreign_rules(dice);
    std::erase_if(rules, [](const Foreign& each) { return each.program.front().find("legacy") != std::string::npos; });
    SCOPED_TRACE(fmt::format("SIDETRACK_SEED={} rules {}\n{}", seed(), index, load(pod.ns(), rules)));
    const std::vector<Live> live = in_kernel(pod.ns());
    if (live.empty()) continue;
    const PodView view = pod.ns().run(read_pod);
    const bool has_dormant = std::ranges::any_of(
        live, [](const Live& each) { return std::ranges::any_of(each.chains, &LiveChain::dormant); });
    for (const Strings& words : listings) {
      SCOPED_TRACE(fmt::format("{}", fmt::join(words, " ")));
      if (has_dormant && words[1] == "-j") continue;  // nft 1.0.6 writes the table's name for its flags
      const std::vector<Live> text = listed(pod.ns(), words);
      expect_same(live, text);
      const PodView pod_of = pod_of_text(text, given(view)).view;
      for (int i = 0; i < 10; ++i) {
        const Probe probe = random_probe(dice, true);
        const Trace in_kernel = explain(probe.packet, view, live);
        const Trace of_text = explain(probe.packet, pod_of, text);
        ++asked;
        const Outcome& outcome = of_text.outcome;
        if (outcome.kind == Outcome::Kind::unknown || outcome.answers == Outcome::Answers::unknown) continue;
        ++decided;
        EXPECT_TRUE(in_kernel.outcome == outcome) << probe.text() << "\n" << trace_text(of_text, {});
        // What drops it may come before what is known to, and is not understood.
        if (sentence(outcome).find("dropped: ") != std::string::npos) continue;
        EXPECT_EQ(sentence(in_kernel.outcome), sentence(outcome)) << probe.text() << "\n" << trace_text(of_text, {});
      }
    }
  }
  EXPECT_GT(decided * 2, asked);
}

}  // namespace
}  // namespace sidetrack::netns
