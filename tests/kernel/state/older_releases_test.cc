// SPDX-License-Identifier: GPL-2.0-or-later
// Rules as istio-iptables, or Istio's agent on the node, programmed them, release by release: `clean` leaves nothing of
// them, and all of what another program has beside them. tests/releases has them as iptables-save prints them, each set
// in the file of the first release that has it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/kernel_test.h"
#include "support/network.h"
#include "support/traffic.h"
#include "support/words.h"

namespace sidetrack::netns {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct RuleSet {
  std::string release;
  std::string name;
  std::string text[2];  // of iptables, of ip6tables

  [[nodiscard]] bool is_ambient() const { return name.starts_with("ambient"); }
};

// "## NAME", and for each family "# iptables" or "# ip6tables" and the tables without COMMIT.
std::vector<RuleSet> read_rule_sets() {
  std::vector<RuleSet> sets;
  for (const auto& file : std::filesystem::directory_iterator(SIDETRACK_SOURCE_DIR "/tests/releases")) {
    std::string* text = nullptr;
    std::ifstream in(file.path());
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("## ")) {
        sets.push_back({file.path().stem(), line.substr(3), {}});
      } else if (line.starts_with("# ")) {
        text = &sets.back().text[line == "# ip6tables" ? 1 : 0];
      } else {
        if (line.starts_with('*') && !text->empty()) *text += "COMMIT\n";
        *text += line + "\n";
      }
    }
  }
  for (RuleSet& set : sets) {
    for (std::string& text : set.text) {
      if (!text.empty()) text += "COMMIT\n";
    }
  }
  return sets;
}

constexpr const char* both_programs[] = {"iptables", "ip6tables"};
// In chains in which some release has rules of these kinds, of the same shape with a uid that is not the proxy's.
constexpr std::string_view foreign_rules =
    "*raw\n-A OUTPUT -p udp --dport 5353 -j CT --zone 2\n-A OUTPUT -p udp --dport 53 -m owner --uid-owner 7 -j CT "
    "--zone 1\n-A OUTPUT -p udp --sport 15053 -m owner --uid-owner 7 -j CT --zone 2\nCOMMIT\n"
    "*mangle\n-A PREROUTING -p tcp -m conntrack --ctstate INVALID -m comment --comment seen -j DROP\nCOMMIT\n"
    "*nat\n-A OUTPUT -p udp --dport 53 -m owner --uid-owner 7 -j ACCEPT\n"
    "-A OUTPUT -p udp --dport 53 -m owner --gid-owner 7 -j RETURN\n"
    "-A OUTPUT -p tcp -j NFLOG --nflog-group 3\n-A PREROUTING -i net7 -j ACCEPT\nCOMMIT\n"
    "*filter\n-A INPUT -m state --state ESTABLISHED -j ACCEPT\n-A INPUT -p tcp --dport 9 -j REJECT\nCOMMIT\n";

class OlderReleases : public KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  static void load(const Namespace& pod, const char* family, std::string_view text) {
    pod.must({fmt::format("{}-{}-restore", family, GetParam()), "--noflush"}, std::string(text));
  }
  // Without what says nothing: empty built-in chains.
  static std::string saved(const Namespace& pod) {
    std::string all;
    for (const char* family : both_programs) {
      all += pod.must({"bash", "-c", fmt::format("{}-{}-save | grep -E '^-|^:[A-Z_]+ - '; true", family, GetParam())});
    }
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(, OlderReleases, ::testing::Values("nft", "legacy"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(OlderReleases, AreRemovedAndNothingElse) {
  const Namespace only_another;
  for (const char* family : both_programs) load(only_another, family, foreign_rules);
  const std::string expected = saved(only_another);
  const std::vector<RuleSet> sets = read_rule_sets();
  ASSERT_GE(sets.size(), 40U);
  for (const RuleSet& set : sets) {
    SCOPED_TRACE(fmt::format("Istio {}: {}", set.release, set.name));
    const Namespace pod;
    for (std::size_t i = 0; i < std::size(both_programs); ++i) {
      load(pod, both_programs[i], foreign_rules);
      if (!set.text[i].empty()) load(pod, both_programs[i], set.text[i]);
    }
    ASSERT_NE(saved(pod), expected);
    Words words{program_under_test(), "clean"};
    if (set.is_ambient()) words = words + Words{"--dataplane", "ambient"};
    const Output cleaned = pod.program(words);
    EXPECT_EQ(cleaned.exit_code, 0) << cleaned.err;
    EXPECT_EQ(saved(pod), expected);
  }
}

// Istio's program ran again in the same pod, as an init container does that is restarted: each rule is there twice.
TEST_P(OlderReleases, AreRemovedWhereTheyStandTwice) {
  for (const RuleSet& set : read_rule_sets()) {
    if (set.is_ambient()) continue;
    SCOPED_TRACE(fmt::format("Istio {}: {}", set.release, set.name));
    const Namespace pod;
    for (std::size_t i = 0; i < std::size(both_programs); ++i) {
      if (set.text[i].empty()) continue;
      load(pod, both_programs[i], set.text[i]);
      std::string rules;
      for (std::size_t at = 0; at < set.text[i].size();) {
        const std::size_t end = set.text[i].find('\n', at);
        const std::string line = set.text[i].substr(at, end - at);
        if (!line.starts_with(':')) rules += line + "\n";
        at = end + 1;
      }
      load(pod, both_programs[i], rules);
    }
    pod.must({program_under_test(), "clean"});
    EXPECT_EQ(saved(pod), "");
  }
}

// Istio's own clean program of up to 1.9 removes its chains, and leaves its rules about DNS: the pod has none then.
TEST_P(OlderReleases, RemoveDnsWhoseChainsAreGone) {
  constexpr std::string_view foreign = "*nat\n-A OUTPUT -p udp --dport 53 -m owner --uid-owner 7 -j RETURN\nCOMMIT\n";
  constexpr std::string_view zones =
      "*raw\n-A OUTPUT -p udp --dport 53 -m owner --uid-owner 1337 -j CT --zone 1\n"
      "-A OUTPUT -p udp --sport 15053 -m owner --uid-owner 1337 -j CT --zone 2\n"
      "-A OUTPUT -d 10.96.0.10/32 -p udp --dport 53 -j CT --zone 2\n"
      "-A PREROUTING -s 10.96.0.10/32 -p udp --sport 53 -j CT --zone 1\nCOMMIT\n";
  constexpr std::string_view redirect =
      "*nat\n-A OUTPUT -p udp --dport 53 -m owner --uid-owner 1337 -j RETURN\n"
      "-A OUTPUT -d 10.96.0.10/32 -p udp --dport 53 -j REDIRECT --to-ports 15053\nCOMMIT\n";
  const auto left_of = [&](std::initializer_list<std::string_view> all) {
    const Namespace pod;
    for (const std::string_view text : all) load(pod, "iptables", text);
    const std::string before = saved(pod);
    pod.must({program_under_test(), "clean"});
    const std::string left = saved(pod);
    return left == before ? std::string("all") : left;
  };
  const Namespace pod;
  load(pod, "iptables", foreign);
  EXPECT_EQ(left_of({foreign, zones, redirect}), saved(pod));
  EXPECT_EQ(left_of({foreign, zones}), "all") << "a part alone";
  EXPECT_EQ(left_of({foreign, redirect}), "all") << "a part alone";
  EXPECT_EQ(left_of({zones, redirect, "*nat\n:KUMA_MESH_OUTBOUND -\nCOMMIT\n"}), "all") << "Kuma's, perhaps";
}

// A rule that no release with those chains writes is another program's.
TEST_P(OlderReleases, LeaveWhatALaterOneWrites) {
  const Namespace pod;
  load(pod, "iptables", "*mangle\n-A PREROUTING -m conntrack --ctstate INVALID -j DROP\nCOMMIT\n");
  const std::string expected = saved(pod);
  const std::vector<RuleSet> sets = read_rule_sets();
  const auto oldest =
      std::ranges::find_if(sets, [](const RuleSet& set) { return set.release == "1.0" && set.name == "REDIRECT"; });
  ASSERT_NE(oldest, sets.end());
  load(pod, "iptables", oldest->text[0]);
  pod.must({program_under_test(), "clean"});
  EXPECT_EQ(saved(pod), expected);
}

// Istio did not bring one of them alone.
TEST_P(OlderReleases, PartsOfThemAreNot) {
  const Namespace pod;
  load(pod, "iptables", "*nat\n:ISTIO_OUTPUT -\n-A OUTPUT -p tcp -j ISTIO_OUTPUT\nCOMMIT\n");
  load(pod, "ip6tables",
       "*filter\n-A INPUT -m state --state ESTABLISHED -j ACCEPT\n-A INPUT -p tcp -j ACCEPT\n-A INPUT -j "
       "REJECT\nCOMMIT\n"
       "*nat\n-A POSTROUTING -p udp --dport 15053 -j SNAT --to-source fd00::1\nCOMMIT\n");
  pod.must({program_under_test(), "clean"});
  const std::string left = saved(pod);
  EXPECT_THAT(left, Not(HasSubstr("ISTIO")));
  for (const char* word : {"-j REJECT", "ESTABLISHED", "SNAT"}) EXPECT_THAT(left, HasSubstr(word));
}

// Another program's rules of such shapes stay beside rules of today, whether these are there or not.
TEST_P(OlderReleases, AreNotSeenInRulesOfAnotherBesideLaterOnes) {
  const Namespace pod;
  load(pod, "iptables",
       "*raw\n-A OUTPUT -p udp --dport 53 -m owner --uid-owner 99 -j CT --zone 1\nCOMMIT\n"
       "*mangle\n-A PREROUTING -m conntrack --ctstate INVALID -j DROP\n"
       "-A OUTPUT -p tcp -m connmark --mark 1337 -j CONNMARK --restore-mark\nCOMMIT\n"
       "*nat\n-A OUTPUT -p udp --dport 53 -m owner --uid-owner 1337 -j RETURN\n"
       "-A OUTPUT -p udp --dport 53 -j REDIRECT --to-ports 15053\nCOMMIT\n");
  const std::string expected = saved(pod);
  for (const Words& options : {Words{}, Words{"--redirect-dns", "--dns-server", "192.0.2.53"}}) {
    const Words apply{
        program_under_test(), "apply", "--ip-families", "ipv4", "--backend", fmt::format("iptables-{}", GetParam())};
    for (int time = 0; time < 2; ++time) {
      const Output applied = pod.program(apply + options);
      EXPECT_EQ(applied.exit_code, 0) << applied.err;
    }
    pod.must({program_under_test(), "clean"});
    EXPECT_EQ(saved(pod), expected);
  }
}

// Rules that 1.4 would have written, and ones behind Istio's jumps, are not those of a later release.
TEST_P(OlderReleases, LeaveWhatOthersPutBesideLaterOnes) {
  const Namespace pod;
  pod.must({program_under_test(), "apply", "-i", "*", "-b", "*", "--ip-families", "ipv4", "--backend",
            fmt::format("iptables-{}", GetParam())});
  load(pod, "ip6tables",
       "*filter\n-A INPUT -m state --state ESTABLISHED -j ACCEPT\n-A INPUT -j REJECT --reject-with "
       "icmp6-port-unreachable\nCOMMIT\n");
  load(pod, "iptables",
       "*nat\n-A OUTPUT -o eth1 -j RETURN\n-A PREROUTING -i eth1 -j RETURN\n-A OUTPUT -p udp --dport 69 -j REDIRECT "
       "--to-ports 6969\nCOMMIT\n");
  const Output cleaned = pod.program({program_under_test(), "clean"});
  EXPECT_EQ(cleaned.exit_code, 0) << cleaned.err;
  const std::string left = saved(pod);
  EXPECT_THAT(left, Not(HasSubstr("ISTIO")));
  for (const char* words :
       {"-j REJECT", "ESTABLISHED", "-A OUTPUT -o eth1 -j RETURN", "-A PREROUTING -i eth1 -j RETURN", "6969"})
    EXPECT_THAT(left, HasSubstr(words));
}

// An interface that another program alone leaves alone is not one of -c, which names it in OUTPUT, too.
TEST_P(OlderReleases, LeaveInterfacesOfOthersInFrontOfLaterOnes) {
  const Namespace pod;
  load(pod, "iptables", "*nat\n-A PREROUTING -i eth0 -j RETURN\nCOMMIT\n");
  const std::string expected = saved(pod);
  for (const Words& options : {Words{}, Words{"-c", "eth1"}, Words{"-k", "docker0"}}) {
    const Words apply = Words{program_under_test(),
                              "apply",
                              "-i",
                              "*",
                              "-b",
                              "*",
                              "--ip-families",
                              "ipv4",
                              "--backend",
                              fmt::format("iptables-{}", GetParam())} +
                        options;
    for (int time = 0; time < 2; ++time) {
      const Output applied = pod.program(apply);
      EXPECT_EQ(applied.exit_code, 0) << applied.err;
    }
    EXPECT_THAT(saved(pod), HasSubstr("-A PREROUTING -i eth0 -j RETURN"));
    pod.must({program_under_test(), "clean"});
    EXPECT_EQ(saved(pod), expected);
  }
}

}  // namespace
}  // namespace sidetrack::netns
