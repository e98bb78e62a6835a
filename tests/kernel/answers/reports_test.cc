// SPDX-License-Identifier: GPL-2.0-or-later
// What is said of rules in a text depends on what the text has, not on what it lacks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/kernel_test.h"
#include "support/network.h"
#include "support/traffic.h"
#include "support/words.h"

namespace sidetrack::netns {
namespace {

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
