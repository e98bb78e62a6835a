// SPDX-License-Identifier: GPL-2.0-or-later
// Any state in, the asked state out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "support/amount.h"
#include "support/client.h"
#include "support/kernel_test.h"
#include "support/listing.h"
#include "support/network.h"
#include "support/starting_states.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Wanted {
  const char* name;
  std::vector<std::string> options;
};

const Wanted wanted[] = {
    {"redirect", {"-i", "*", "-b", "*", "-d", "15090,15021,15020"}},
    {"tproxy", {"-i", "*", "-b", "*", "-m", "TPROXY", "-c", "net1"}},
    {"dns", {"-i", "10.0.0.0/8,fd00::/8", "-b", "80", "--redirect-dns", "--dns-server", "10.96.0.10", "-k", "net3"}},
    {"ambient", {"--dataplane", "ambient", "--redirect-dns", "-k", "net3", "--probe-address", "169.254.9.9"}},
};

struct Case {
  StartingState state;
  std::string variant;  // of the starting state
  Wanted wanted;
  const char* backend;
};

// Each state meets another part of what is asked and of the backends, of which there are twelve pairs.
std::vector<Case> cases() {
  const unsigned stride = amount("SIDETRACK_CONVERGE_STRIDE", 5);
  std::vector<Case> all;
  unsigned made = 0;
  for (const StartingState& state : starting_states()) {
    for (const char* variant : {"legacy", "nft"}) {
      if (!state.has_variants && std::string_view(variant) == "nft") continue;
      for (const Wanted& asked : wanted) {
        for (const char* backend : backends) {
          if (made++ % stride == 0) all.push_back({state, variant, asked, backend});
        }
      }
    }
  }
  return all;
}

// Rules of another program, before, between and after ours, and a chain of their own.
constexpr const char* others_first =
    "*nat\n-N OTHERS\n-A OTHERS -p udp --dport 7 -j RETURN\n-A PREROUTING -p udp --dport 9 -j OTHERS\n"
    "-A OUTPUT -p udp --dport 9 -m comment --comment others -j OTHERS\nCOMMIT\n"
    "*mangle\n-A PREROUTING -p udp --dport 9 -j MARK --set-mark 7\nCOMMIT\n";
constexpr const char* others_last =
    "*nat\n-A OUTPUT -p udp --dport 10 -j OTHERS\n-A POSTROUTING -p udp --dport 9 -j ACCEPT\nCOMMIT\n";

// The lines that are not ours, with their counters; in order.
std::string foreign(const Namespace& where, const std::string& variant) {
  std::istringstream lines(where.must({"iptables-" + variant + "-save", "-c"}));
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("OTHERS") != std::string::npos || line.find("--dport 9") != std::string::npos) result += line + "\n";
  }
  return result;
}

class Converge : public KernelTest, public ::testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ip(ns, "link set lo up\n");
  }
  Output run(const char* command) const {
    std::vector<std::string> words{program_under_test(), command,         "--backend",
                                   GetParam().backend,   "--ip-families", "ipv4,ipv6"};
    words.insert(words.end(), GetParam().wanted.options.begin(), GetParam().wanted.options.end());
    return ns.program(words);
  }
  Namespace ns;
};

TEST_P(Converge, ToWhatIsAsked) {
  const Case& tested = GetParam();
  ns.must({"iptables-" + tested.variant + "-restore", "--noflush"}, others_first);
  tested.state.make(ns, tested.variant);
  ns.must({"iptables-" + tested.variant + "-restore", "--noflush"}, others_last);
  const std::string others = foreign(ns, tested.variant);

  const Output differs = run("diff");
  EXPECT_EQ(differs.exit_code, 6) << differs.out << differs.err;
  const Output applied = run("apply");
  ASSERT_EQ(applied.exit_code, 0) << applied.err;
  const Output verified = run("verify");
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  EXPECT_EQ(foreign(ns, tested.variant), others);

  const std::string after = listing(ns);
  const Output again = run("apply");
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.err, HasSubstr("nothing to change"));
  EXPECT_EQ(listing(ns), after);

  const Output cleaned = ns.program({program_under_test(), "clean"});
  EXPECT_EQ(cleaned.exit_code, 0) << cleaned.err;
  EXPECT_THAT(listing(ns), Not(HasSubstr("ISTIO")));
  EXPECT_THAT(listing(ns), Not(HasSubstr("istio")));
  EXPECT_THAT(listing(ns), Not(HasSubstr("sidetrack")));
  EXPECT_THAT(listing(ns), Not(HasSubstr("lookup 133")));
  EXPECT_THAT(listing(ns), Not(HasSubstr("lookup 100")));
  EXPECT_THAT(listing(ns), Not(HasSubstr("::6/128")));
  EXPECT_EQ(foreign(ns, tested.variant), others);
}

INSTANTIATE_TEST_SUITE_P(, Converge, ::testing::ValuesIn(cases()), [](const auto& tested) {
  const Case& c = tested.param;
  std::string name = std::string(c.state.name) + (c.state.has_variants ? "_" + c.variant : "") + "_to_" +
                     c.wanted.name + "_in_" + c.backend;
  std::ranges::replace(name, '-', '_');
  return name;
});

// --force-apply: counters are the trace of a rule that was not written anew.
class ForceApply : public KernelTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(ForceApply, RewritesEqualRulesAndLeavesOthers) {
  const Namespace ns;
  ip(ns, "link set lo up\n");
  const std::string variant = std::string_view(GetParam()) == "iptables-legacy" ? "legacy" : "nft";
  ns.must({"iptables-" + variant + "-restore"},
          "*nat\n-A OUTPUT -p tcp --dport 9 -m comment --comment OTHERS\nCOMMIT\n");
  const auto apply = [&](std::vector<std::string> more) {
    std::vector<std::string> words{
        program_under_test(), "apply", "--backend", GetParam(), "--ip-families", "ipv4", "-i", "*", "-b", "*"};
    words.insert(words.end(), more.begin(), more.end());
    ns.must(words);
  };
  // Packets that each rule has seen, summed up over ours and over others'.
  const auto packets = [&] {
    std::pair<int, int> ours_and_others;
    const auto shown = nlohmann::json::parse(ns.must({program_under_test(), "show", "--json"}));
    for (const auto& chain : shown["chains"]) {
      for (const auto& rule : chain["rules"]) {
        const bool other = rule["rule"].get<std::string>().find("OTHERS") != std::string::npos;
        (other ? ours_and_others.second : ours_and_others.first) += rule["packets"].get<int>();
      }
    }
    return ours_and_others;
  };

  apply({});
  connect(ns, {}, {.to = Endpoint("127.0.0.1:9"), .protocol = Protocol::tcp, .from = {}});
  const auto counted = packets();
  EXPECT_GT(counted.first, 0);
  EXPECT_GT(counted.second, 0);
  apply({});
  EXPECT_EQ(packets(), counted);
  apply({"--force-apply"});
  EXPECT_EQ(packets(), std::pair(0, counted.second));
}

// A changed rule differs in nothing but what changed, not in the order of its words.
class ChangedRules : public KernelTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(ChangedRules, DifferInWhatChangedAlone) {
  const Namespace ns;
  ip(ns, "link set lo up\n");
  const auto words = [](const char* command, const char* uid) {
    return std::vector<std::string>{program_under_test(),
                                    command,
                                    "--backend",
                                    GetParam(),
                                    "--ip-families",
                                    "ipv4",
                                    "-i",
                                    "*",
                                    "-b",
                                    "*",
                                    "-g",
                                    "1337",
                                    "-u",
                                    uid};
  };
  ns.must(words("apply", "1338"));
  const Output differs = ns.program(words("diff", "1339"));
  EXPECT_EQ(differs.exit_code, 6);
  std::set<std::string> before;
  std::set<std::string> after;
  std::istringstream lines(differs.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("---") || line.starts_with("+++")) continue;
    if (line.starts_with("+")) after.insert(line.substr(1));
    if (!line.starts_with("-")) continue;
    const std::size_t uid = line.find("1338");
    ASSERT_NE(uid, std::string::npos) << line;
    before.insert(line.replace(uid, 4, "1339").substr(1));
  }
  EXPECT_THAT(after, ::testing::SizeIs(::testing::Ge(3u)));
  EXPECT_EQ(before, after);
}

INSTANTIATE_TEST_SUITE_P(, ForceApply, ::testing::ValuesIn(backends), backend_name);
INSTANTIATE_TEST_SUITE_P(, ChangedRules, ::testing::ValuesIn(backends), backend_name);

}  // namespace
}  // namespace sidetrack::netns
