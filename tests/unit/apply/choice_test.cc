// SPDX-License-Identifier: GPL-2.0-or-later
#include "apply/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mesh/plan.h"
#include "unit/usual_config.h"

namespace sidetrack {
namespace {

using enum BackendKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Choice, IsNetlinkFirstAndLegacyLast) {
  const Choice choice = choose({}, plan(injected(), {}).ruleset, false);
  EXPECT_THAT(choice.order, ElementsAre(iptables_nft, nftables, iptables_legacy));
  EXPECT_EQ(choice.because, "");
}

TEST(Choice, IsLegacyAloneWhereItIsInUse) { EXPECT_THAT(choose({}, {}, true).order, ElementsAre(iptables_legacy)); }

// 309 rules in a chain.
Ruleset long_list() {
  Config config = injected();
  for (int i = 0; i < 300; ++i) {
    config.outbound_exclude_ranges.push_back(
        *AddressRange::parse("10." + std::to_string(i % 256) + "." + std::to_string(i / 256) + ".0/24"));
  }
  return plan(config, {}).ruleset;
}

TEST(Choice, LongListsTakeSets) {
  const Choice choice = choose({}, long_list(), false);
  EXPECT_THAT(choice.order, ElementsAre(nftables, iptables_nft, iptables_legacy));
  EXPECT_THAT(choice.because, HasSubstr("309 rules"));
}

TEST(Choice, BeginsWithTheOneThatHoldsTheSidecarsRules) {
  EXPECT_THAT(choose({}, {}, false, {iptables_nft}).order, ElementsAre(iptables_nft, nftables, iptables_legacy));
  EXPECT_EQ(choose({}, {}, false, {iptables_nft}).because, "") << "as without";
  const Choice choice = choose({}, {}, false, {nftables});
  EXPECT_THAT(choice.order, ElementsAre(nftables, iptables_nft, iptables_legacy));
  EXPECT_EQ(choice.because, "nftables holds rules of the sidecar already");
  EXPECT_THAT(choose({}, {}, true, {iptables_nft}).order, ElementsAre(iptables_nft, iptables_legacy));
  EXPECT_THAT(choose({}, {}, true, {nftables}).order, ElementsAre(nftables, iptables_legacy));
  EXPECT_THAT(choose({}, {}, true, {iptables_legacy}).order, ElementsAre(iptables_legacy));
  // Here and there: as if there were none.
  EXPECT_THAT(choose({}, {}, true, {iptables_nft, nftables}).order, ElementsAre(iptables_legacy));
  EXPECT_THAT(choose({}, {}, false, {iptables_legacy, nftables}).order,
              ElementsAre(iptables_nft, nftables, iptables_legacy));
}

TEST(Choice, LongListsLeaveIptablesNftAlone) {
  for (const bool legacy_in_use : {false, true}) {
    const Choice choice = choose({}, long_list(), legacy_in_use, {iptables_nft});
    EXPECT_THAT(choice.order, ElementsAre(nftables, iptables_nft, iptables_legacy));
    EXPECT_THAT(choice.because, HasSubstr("309 rules"));
    EXPECT_EQ(choose({}, long_list(), legacy_in_use, {nftables}).order.front(), nftables);
  }
  EXPECT_THAT(choose({}, long_list(), true, {iptables_legacy}).order, ElementsAre(iptables_legacy));
}

TEST(Choice, WhatIsAskedForByNameDecidesAlone) {
  ApplyOptions options;
  options.force_iptables_binary = BackendKind::iptables_legacy;
  EXPECT_THAT(choose(options, {}, false).order, ElementsAre(iptables_legacy));
  options.force_iptables_binary = BackendKind::iptables_nft;
  EXPECT_THAT(choose(options, {}, true).order, ElementsAre(iptables_nft));
  options.native_nftables = true;
  EXPECT_THAT(choose(options, {}, true, {iptables_nft}).order, ElementsAre(nftables));
  options.backend = BackendKind::iptables_legacy;
  EXPECT_THAT(choose(options, {}, false).order, ElementsAre(iptables_legacy));
}

}  // namespace
}  // namespace sidetrack
