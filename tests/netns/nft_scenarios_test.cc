// SPDX-License-Identifier: GPL-2.0-or-later
// The two oracles, for every scenario of rules/ and both backends of nf_tables: the text that render prints, loaded by
// the others' own tool, lists as what we commit; and what we commit reads back as it was meant.
#include <cctype>
#include <regex>

#include "golden/renderings.h"
#include "golden/scenario.h"
#include "kernel_test.h"
#include "namespace.h"
#include "sidetrack/backend.h"
#include "sidetrack/diff.h"
#include "sidetrack/render.h"

namespace sidetrack::netns {
namespace {

class NftScenario : public KernelTest, public ::testing::WithParamInterface<Scenario> {
 protected:
  [[nodiscard]] static Ruleset wanted() { return planned(GetParam()).plan.ruleset; }

  static void commit(const Namespace& space, std::unique_ptr<Backend> (*open)(), const Ruleset& wanted) {
    space.run([&] {
      const auto backend = open();
      backend->replace(backend->read(), wanted);
      EXPECT_TRUE(equal(backend->read(), backend->stored(wanted))) << "reads back as it was meant";
      EXPECT_TRUE(backend->check(backend->read(), wanted).empty());
    });
  }
};

TEST_P(NftScenario, NativeListsAsTheScript) {
  const Namespace by_script;
  by_script.must({"nft", "-f", "-"}, nft_script(wanted()));
  const Namespace by_us;
  commit(by_us, open_nftables, wanted());
  EXPECT_EQ(by_us.must({"nft", "list", "ruleset"}), by_script.must({"nft", "list", "ruleset"}));
}

TEST_P(NftScenario, IptablesListsAsTheRestoredText) {
  const auto save = [](const Namespace& space) {
    const std::string text = space.must({"iptables-nft-save"}) + space.must({"ip6tables-nft-save"});
    EXPECT_EQ(text.find("incompatible"), std::string::npos) << text;
    return std::regex_replace(text, std::regex("#[^\n]*\n"), "");  // times of day
  };
  const Namespace by_iptables;
  const Ruleset rules = wanted();
  by_iptables.must({"iptables-nft-restore", "--noflush"}, iptables_restore(rules, Family::ipv4));
  by_iptables.must({"ip6tables-nft-restore", "--noflush"}, iptables_restore(rules, Family::ipv6));
  const Namespace by_us;
  commit(by_us, open_iptables_nft, rules);
  EXPECT_EQ(save(by_us), save(by_iptables));
}

INSTANTIATE_TEST_SUITE_P(Rules, NftScenario, ::testing::ValuesIn(scenarios()), [](const auto& scenario) {
  std::string name = scenario.param.name;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
});

}  // namespace
}  // namespace sidetrack::netns
