// SPDX-License-Identifier: GPL-2.0-or-later
// What iptables-save prints is read as the rules that the kernel holds, and asked alike: of every scenario of rules/,
// and of random rules. $SIDETRACK_SEED varies the latter, $SIDETRACK_TEXTS is how many there are.
#include <fmt/format.h>

#include <algorithm>
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
#include "support/words.h"
#include "text/iptables_text.h"
#include "text/text_pod.h"

namespace sidetrack::netns {
namespace {

std::string content_of(const std::filesystem::path& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

class FromText : public KernelTest {
 protected:
  // Of iptables-nft-save the first line tells no backend in every version: it is named, as in a report.
  static RulesOfTexts read_saved(const Namespace& ns) {
    std::vector<RulesText> texts;
    for (const char* program :
         {"iptables-legacy-save", "ip6tables-legacy-save", "iptables-nft-save", "ip6tables-nft-save"}) {
      const Output saved = ns.program({program});
      if (saved.out.find('*') != std::string::npos)
        texts.push_back({program, fmt::format("$ {}\n{}", program, saved.out)});
    }
    return read_iptables_texts(texts, false);
  }

  static std::vector<Live> of_iptables(const Namespace& ns) {
    std::vector<Live> live = ns.run(read_all);
    std::erase_if(live, [](const Live& each) { return each.backend == BackendKind::nftables || !holds_rules(each); });
    return live;
  }

  static void expect_same(const std::vector<Live>& live, const std::vector<Live>& text) {
    ASSERT_EQ(live.size(), text.size());
    for (std::size_t i = 0; i < live.size(); ++i) {
      EXPECT_EQ(live[i].backend, text[i].backend);
      for (const LiveChain& chain : text[i].chains) {  // iptables-nft prints built-in chains that are not there
        const bool is_there = live[i].find(chain.families.list().front(), chain.table, chain.name) != nullptr;
        EXPECT_TRUE(is_there || (chain.hook && chain.rules.empty() && chain.policy == Verdict::accept)) << chain.name;
      }
      for (const LiveChain& chain : live[i].chains) {
        SCOPED_TRACE(
            fmt::format("{} {} {} {}", name(live[i].backend), names(chain.families), chain.table_name, chain.name));
        const LiveChain* read = text[i].find(chain.families.list().front(), chain.table, chain.name);
        ASSERT_NE(read, nullptr);
        EXPECT_EQ(read->table_name, chain.table_name);
        EXPECT_EQ(read->hook, chain.hook);
        EXPECT_EQ(read->policy, chain.policy);
        EXPECT_EQ(read->ours, chain.ours);
        EXPECT_EQ(read->of_agent, chain.of_agent);
        ASSERT_EQ(read->rules.size(), chain.rules.size());
        for (std::size_t rule = 0; rule < chain.rules.size(); ++rule) expect_same(chain.rules[rule], read->rules[rule]);
      }
    }
  }

  // What is not understood has other words, and may be less of the rule.
  static void expect_same(const LiveRule& live, const LiveRule& text) {
    const std::string words = iptables_words(live.rule) + "\n" + iptables_words(text.rule);
    EXPECT_EQ(live.ours, text.ours) << words;
    EXPECT_EQ(live.of_agent, text.of_agent) << words;
    if (!is_understood(live.rule)) {
      EXPECT_FALSE(is_understood(text.rule)) << words;
      return;
    }
    if (const auto* rejects = std::get_if<Reject>(&live.rule.target); rejects != nullptr) {
      EXPECT_TRUE(std::holds_alternative<Reject>(text.rule.target)) << words;
    } else {
      EXPECT_EQ(live.rule, text.rule) << words;
    }
  }

  // The pod as somebody who can look at it says.
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
};

TEST_F(FromText, EveryScenarioIsAsInTheKernel) {
  std::set<std::string> tried;
  for (const auto& scenario : std::filesystem::directory_iterator(SIDETRACK_SOURCE_DIR "/rules")) {
    if (!scenario.is_directory() || scenario.path().filename() == "bypass-cgroup") continue;  // its cgroup is not there
    SCOPED_TRACE(scenario.path().filename().string());
    for (const char* kind : {"legacy", "nft"}) {
      Namespace ns;
      for (const auto& [rules, program] : {std::pair("ipv4.rules", "iptables"), std::pair("ipv6.rules", "ip6tables")}) {
        const std::string text = content_of(scenario.path() / rules);
        if (text.empty()) continue;
        const Output loaded = ns.program({fmt::format("{}-{}-restore", program, kind)}, text);
        ASSERT_EQ(loaded.exit_code, 0) << loaded.err;
        tried.insert(scenario.path().filename().string());
      }
      const std::vector<Live> live = of_iptables(ns);
      if (!live.empty()) expect_same(live, read_saved(ns).live);
    }
  }
  EXPECT_GT(tried.size(), 40U);
}

// A comment may have several lines; of `iptables -L -n -v` each match is what its extension prints.
TEST_F(FromText, SavedAndListedRulesAreAsInTheKernel) {
  const std::vector<Words> rules = {
      {"-m", "addrtype", "--dst-type", "LOCAL"},
      {"-m", "addrtype", "!", "--src-type", "LOCAL,BROADCAST", "--limit-iface-in"},
      {"-m", "addrtype", "--src-type", "LOCAL", "--dst-type", "UNICAST"},
      {"-p", "tcp", "-m", "multiport", "--ports", "80,443,1000:2000"},
      {"-p", "tcp", "-m", "multiport", "!", "--ports", "80"},
      {"-p", "tcp", "!", "--sport", "1024:65535", "!", "--dport", "80"},
      {"-p", "tcp", "--dport", "80", "--syn"},
      {"-p", "tcp", "!", "--syn"},
      {"-p", "tcp", "--tcp-flags", "ALL", "NONE"},
      {"-m", "iprange", "--src-range", "10.0.0.1-10.0.0.9"},
      {"-m", "iprange", "!", "--dst-range", "10.0.0.1-10.0.0.9", "--src-range", "1.1.1.1-1.1.1.3"},
      {"-p", "udp", "--sport", "1:53", "-m", "comment", "--comment", "a\n\n\"b"},
  };
  for (const char* kind : {"legacy", "nft"}) {
    SCOPED_TRACE(kind);
    const Namespace ns;
    const std::string program = fmt::format("iptables-{}", kind);
    for (const Words& rule : rules) ns.must(Words{program, "-A", "INPUT"} + rule + Words{"-j", "ACCEPT"});
    const std::vector<Live> live = of_iptables(ns);
    ASSERT_EQ(live.size(), 1U);
    EXPECT_TRUE(std::ranges::all_of(live.front().chains.front().rules,
                                    [](const LiveRule& each) { return is_understood(each.rule); }));
    expect_same(live, read_saved(ns).live);
    const RulesText listed{"report", fmt::format("$ {0} -L -n -v\n{1}", program, ns.must({program, "-L", "-n", "-v"}))};
    expect_same(live, read_iptables_texts({&listed, 1}, false).live);
  }
}

TEST_F(FromText, RandomRulesAreAskedAsInTheKernel) {
  for (unsigned index = 0; index < amount("SIDETRACK_TEXTS", 12); ++index) {
    Dice dice(3000 + index);
    Pod pod;
    std::vector<Foreign> rules = foreign_rules(dice);
    std::erase_if(rules, [](const Foreign& each) { return each.program.front() == "nft"; });
    SCOPED_TRACE(fmt::format("SIDETRACK_SEED={} rules {}\n{}", seed(), index, load(pod.ns(), rules)));
    const std::vector<Live> live = of_iptables(pod.ns());
    if (live.empty()) continue;
    const std::vector<Live> text = read_saved(pod.ns()).live;
    expect_same(live, text);
    const PodView view = pod.ns().run(read_pod);
    const PodView pod_of = pod_of_text(text, given(view)).view;
    for (int i = 0; i < 20; ++i) {
      const netns::Probe probe = random_probe(dice, true);
      const Trace in_kernel = explain(probe.packet, view, live);
      const Trace of_text = explain(probe.packet, pod_of, text);
      EXPECT_EQ(sentence(in_kernel.outcome), sentence(of_text.outcome)) << probe.text() << "\n"
                                                                        << trace_text(of_text, {});
      EXPECT_EQ(in_kernel.steps.size(), of_text.steps.size()) << probe.text();
    }
  }
}

}  // namespace
}  // namespace sidetrack::netns
