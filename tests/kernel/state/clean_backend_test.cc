// SPDX-License-Identifier: GPL-2.0-or-later
// `clean --backend` removes the rules of that backend alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/kernel_test.h"
#include "support/network.h"
#include "support/traffic.h"
#include "support/words.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(KernelTest, CleanOfOneBackendLeavesTheOthers) {
  const Namespace pod;
  const auto run = [&](const Words& words) { return pod.program(Words{program_under_test()} + words); };
  const auto nft_rules = [&] { return pod.must({"nft", "list", "ruleset"}); };
  const auto routing = [&] { return pod.must({"ip", "rule"}); };
  pod.must(
      {program_under_test(), "apply", "--ip-families", "ipv4", "-m", "TPROXY", "-b", "*", "--backend", "nftables"});
  pod.must({"iptables-legacy-restore"},
           "*nat\n:ISTIO_OUTPUT -\n-A OUTPUT -p tcp -j ISTIO_OUTPUT\n-A ISTIO_OUTPUT -j RETURN\nCOMMIT\n");
  const std::string of_nftables = nft_rules();
  const std::string rules_of_routing = routing();

  EXPECT_THAT(run({"diff", "--clean"}).out, HasSubstr("sidetrack"));
  EXPECT_EQ(run({"diff", "--clean", "--backend", "iptables-nft"}).exit_code, 0);
  const Output shown = run({"diff", "--clean", "--backend", "iptables-legacy"});
  EXPECT_EQ(shown.exit_code, 6) << shown.err;
  EXPECT_THAT(shown.out, AllOf(HasSubstr("iptables-legacy"), Not(HasSubstr("nftables")), Not(HasSubstr("ip rule"))));

  EXPECT_THAT(run({"clean", "--backend", "iptables-nft"}).err, HasSubstr("nothing to remove (--backend iptables-nft)"));
  const Output cleaned = run({"clean", "--backend", "iptables-legacy"});
  EXPECT_EQ(cleaned.exit_code, 0) << cleaned.err;
  EXPECT_THAT(cleaned.err, HasSubstr("from iptables-legacy (--backend iptables-legacy)"));
  EXPECT_THAT(pod.must({"iptables-legacy-save"}), Not(HasSubstr("ISTIO")));
  EXPECT_EQ(nft_rules(), of_nftables);
  EXPECT_EQ(routing(), rules_of_routing);

  EXPECT_EQ(run({"clean", "--backend", "nftables"}).exit_code, 0);
  EXPECT_EQ(nft_rules(), "");
  EXPECT_THAT(routing(), Not(HasSubstr("lookup 133")));
}

}  // namespace
}  // namespace sidetrack::netns
