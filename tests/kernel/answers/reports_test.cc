// SPDX-License-Identifier: GPL-2.0-or-later
// What is said of rules in a text depends on what the text has, not on what it lacks.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/scan.h"
#include "support/kernel_test.h"
#include "support/network.h"
#include "support/traffic.h"
#include "support/words.h"

namespace sidetrack::netns {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Reports : public KernelTest {
 protected:
  Output sidetrack(const Words& words, const std::string& text) const {
    return ns_.program(Words{program_under_test()} + words, text);
  }
  Namespace ns_;
};

// The address of IPv6 is an assumption.
TEST_F(Reports, OfIPv4AloneHaveNoFamilyThatIsNotCaptured) {
  const std::string text = ns_.must({"cat", SIDETRACK_SOURCE_DIR "/rules/redirect-default/ipv4.rules"});
  const Output linted = sidetrack({"lint", "--rules", "-"}, text);
  EXPECT_THAT(linted.out, Not(HasSubstr("ST005"))) << linted.err;
  const Output given = sidetrack({"lint", "--rules", "-", "--address", "10.1.1.2/24,fd00::7/64"}, text);
  EXPECT_THAT(given.out, HasSubstr("ST005")) << given.err;
}

TEST_F(Reports, ThatAreCutOffLeaveOpenWhatTheyMayLack) {
  const auto asked = [&](const std::string& text) {
    return sidetrack({"explain", "--rules", "-", "out", "tcp", "10.96.0.10:443", "--brief"}, text).out;
  };
  const std::string nft = "table inet t {\n\tchain c {\n\t\tdrop\n\t}\n";
  EXPECT_THAT(asked(nft), HasSubstr("unknown"));
  EXPECT_THAT(asked(nft), HasSubstr("[the text ends before the table]"));
  EXPECT_THAT(asked(nft + "}\n"), Not(HasSubstr("unknown")));
  const std::string saved =
      "*nat\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:A - [0:0]\n-A PREROUTING -p tcp "
      "-j REDIRECT --to-ports 1\n";
  EXPECT_THAT(asked(saved), HasSubstr("[the text ends before COMMIT]"));
  EXPECT_THAT(asked(saved + "COMMIT\n"), Not(HasSubstr("unknown")));
}

// Of each line, and of each line from which or up to which lines are missing: an answer is that of the whole text,
// unknown, or it says what it assumes. A program that lists the rules, and rules of others before and behind.
TEST_F(Reports, ThatLackLinesAreNeverCertainOfAnotherAnswer) {
  ns_.must({"iptables-legacy-restore"}, R"(*nat
:MINE - [0:0]
:ISTIO_OUTPUT - [0:0]
:ISTIO_REDIRECT - [0:0]
-A PREROUTING -p tcp --dport 90 -j REDIRECT --to-ports 15006
-A OUTPUT -d 10.96.0.1/32 -j RETURN
-A OUTPUT -p tcp -j ISTIO_OUTPUT
-A OUTPUT -p tcp --dport 90 -j REDIRECT --to-ports 90
-A OUTPUT -j MINE
-A MINE -d 10.96.0.2/32 -j RETURN
-A MINE -p tcp -j REDIRECT --to-ports 100
-A ISTIO_OUTPUT -m owner --uid-owner 1337 -j RETURN
-A ISTIO_OUTPUT -d 10.96.0.3/32 -j RETURN
-A ISTIO_OUTPUT -p tcp --dport 80 -j ISTIO_REDIRECT
-A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001
COMMIT
)");
  const auto answer = [&](const std::string& text, const std::string& to) {
    const Output said = sidetrack({"explain", "--rules", "-", "out", "tcp", to, "--brief"}, text);
    const bool assumes = said.err.find("assumed to be whole") != std::string::npos ||
                         said.err.find("no rules") != std::string::npos ||
                         said.err.find("no table is given") != std::string::npos;
    return assumes ? std::string("unknown") : said.out;
  };
  std::size_t known = 0;
  for (const Words& command : {Words{"iptables-legacy-save", "-t", "nat"}, Words{"iptables-legacy", "-t", "nat", "-S"},
                               Words{"iptables-legacy", "-t", "nat", "-L", "-n", "-v"}}) {
    const std::string text = ns_.must(command);
    const std::vector<std::string_view> lines = split_at_each(text, '\n');
    for (const std::string to : {"10.96.0.1:80", "10.96.0.2:81", "10.96.0.3:80", "10.96.0.4:80", "10.96.0.4:90"}) {
      const std::string whole = answer(text + "$ \n", to);
      EXPECT_THAT(whole, Not(HasSubstr("unknown"))) << text;
      for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
        const auto before = fmt::format("{}\n", fmt::join(std::span(lines).first(i), "\n"));
        const auto after = fmt::format("{}\n", fmt::join(std::span(lines).subspan(i + 1), "\n"));
        for (const std::string& cut : {before, after + "$ \n", before + "...\n" + after + "$ \n"}) {
          const std::string found = answer(cut, to);
          known += found == whole ? 1U : 0U;
          EXPECT_THAT(found, AnyOf(whole, HasSubstr("unknown"))) << to << "\n" << cut;
        }
      }
    }
  }
  EXPECT_GT(known, 100U);
}

// No option of ours asked for them.
TEST_F(Reports, OfAnotherMeshNameNoOption) {
  const std::string rules =
      ns_.must({"sed", "s/^\\*nat/COMMIT\\n*nat/; $aCOMMIT", SIDETRACK_SOURCE_DIR "/tests/meshes/kuma-older"});
  for (const Words& words : {Words{"show"}, Words{"show", "--json"}, Words{"map", "--family", "ipv4"},
                             Words{"explain", "out", "udp", "10.96.0.10:53", "--uid", "1000"}}) {
    const Output said = sidetrack(words + Words{"--rules", "-"}, rules);
    EXPECT_THAT(said.out, HasSubstr("goes to the proxy's resolver")) << said.err;
    EXPECT_THAT(said.out, Not(HasSubstr("-dns"))) << said.out;
  }
}

}  // namespace
}  // namespace sidetrack::netns
