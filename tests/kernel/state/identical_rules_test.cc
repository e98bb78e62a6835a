// SPDX-License-Identifier: GPL-2.0-or-later
// Another program has the same rules in built-in chains as a sidecar: they stay, and ours come beside them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "support/kernel_test.h"
#include "support/network.h"
#include "support/traffic.h"
#include "support/words.h"

namespace sidetrack::netns {
namespace {

using ::testing::HasSubstr;

const Words usual_options{"--ip-families", "ipv4", "-m", "TPROXY", "-i", "*", "-b", "*", "-c", "net7", "-k", "net8"};

// Those of the plan that lead to no chain of its own.
std::string rules_in_built_in_chains(const Namespace& ns) {
  const std::string all = ns.must(Words{program_under_test(), "render"} + usual_options);
  std::string kept;
  for (std::size_t at = 0; at < all.size();) {
    const auto end = std::min(all.find('\n', at), all.size());
    const std::string line = all.substr(at, end - at);
    const bool is_rule = line.starts_with("-A ") || line.starts_with("-I ");
    const bool is_of_table = line.starts_with('*') || line == "COMMIT";
    if (is_of_table || (is_rule && line.find("ISTIO_") == std::string::npos)) kept += line + "\n";
    at = end + 1;
  }
  return kept;
}

class IdenticalRules : public KernelTest, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(, IdenticalRules, ::testing::Values("iptables-nft", "iptables-legacy", "nftables"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST_P(IdenticalRules, OfAnotherProgramStay) {
  const Namespace pod;
  const std::string backend = GetParam();
  const std::string of_another = backend == "nftables" ? "iptables-nft" : backend;
  const auto saved = [&] { return pod.must({"bash", "-c", of_another + "-save | grep '^-A'"}); };
  const std::string same = rules_in_built_in_chains(pod);
  for (const char* rule : {"--save-mark", "--restore-mark", "--set-mark 1338", "-i net7", "-o net7", "-i net8"})
    ASSERT_THAT(same, HasSubstr(rule));
  pod.must({of_another + "-restore", "--noflush"}, same);
  const std::string expected = saved();
  const auto run = [&](const Words& words) { return pod.program(Words{program_under_test()} + words); };
  const Words with_backend = usual_options + Words{"--backend", backend};
  for (const Words& more : {Words{}, Words{}, Words{"-o", "22"}}) {
    const Output applied = run(Words{"apply"} + with_backend + more);
    EXPECT_EQ(applied.exit_code, 0) << applied.err;
    const Output verified = run(Words{"verify"} + with_backend + more);
    EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  }
  const Output cleaned = run({"clean"});
  EXPECT_EQ(cleaned.exit_code, 0);
  EXPECT_EQ(saved(), expected);
  const bool beside = backend != "nftables";  // there our rules are in a table of their own
  EXPECT_EQ(cleaned.err.find("this rule stays beside one like it") != std::string::npos, beside) << cleaned.err;
}

}  // namespace
}  // namespace sidetrack::netns
