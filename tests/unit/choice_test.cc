// SPDX-License-Identifier: GPL-2.0-or-later
#include "state/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mesh/plan.h"
#include "usual_config.h"

namespace sidetrack {
namespace {

using enum BackendKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Choice, IsNetlinkFirstAndLegacyLast) {
  const Choice choice = choose(injected(), plan(injected(), {}).ruleset, false);
  EXPECT_THAT(choice.order, ElementsAre(iptables_nft, nftables, iptables_legacy));
  EXPECT_EQ(choice.because, "");
}

TEST(Choice, IsLegacyAloneWhereItIsInUse) {
  EXPECT_THAT(choose(injected(), {}, true).order, ElementsAre(iptables_legacy));
}

TEST(Choice, LongListsTakeSets) {
  Config config = injected();
  for (int i = 0; i < 300; ++i) {
    config.outbound_exclude_ranges.push_back(
        *AddressRange::parse("10." + std::to_string(i % 256) + "." + std::to_string(i / 256) + ".0/24"));
  }
  const Choice choice = choose(config, plan(config, {}).ruleset, false);
  EXPECT_THAT(choice.order, ElementsAre(nftables, iptables_nft, iptables_legacy));
  EXPECT_THAT(choice.because, HasSubstr("309 rules"));
}

TEST(Choice, WhatIsAskedForByNameDecidesAlone) {
  Config config = injected();
  config.force_iptables_binary = Config::ForcedBinary::legacy;
  EXPECT_THAT(choose(config, {}, false).order, ElementsAre(iptables_legacy));
  config.force_iptables_binary = Config::ForcedBinary::nft;
  EXPECT_THAT(choose(config, {}, true).order, ElementsAre(iptables_nft));
  config.native_nftables = true;
  EXPECT_THAT(choose(config, {}, true).order, ElementsAre(nftables));
  config.backend = BackendChoice::iptables_legacy;
  EXPECT_THAT(choose(config, {}, false).order, ElementsAre(iptables_legacy));
}

}  // namespace
}  // namespace sidetrack
