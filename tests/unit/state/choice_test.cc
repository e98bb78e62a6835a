// SPDX-License-Identifier: GPL-2.0-or-later
#include "state/choice.h"

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

TEST(Choice, LongListsTakeSets) {
  Config config = injected();
  for (int i = 0; i < 300; ++i) {
    config.outbound_exclude_ranges.push_back(
        *AddressRange::parse("10." + std::to_string(i % 256) + "." + std::to_string(i / 256) + ".0/24"));
  }
  const Choice choice = choose({}, plan(config, {}).ruleset, false);
  EXPECT_THAT(choice.order, ElementsAre(nftables, iptables_nft, iptables_legacy));
  EXPECT_THAT(choice.because, HasSubstr("309 rules"));
}

TEST(Choice, WhatIsAskedForByNameDecidesAlone) {
  ApplyOptions options;
  options.force_iptables_binary = BackendKind::iptables_legacy;
  EXPECT_THAT(choose(options, {}, false).order, ElementsAre(iptables_legacy));
  options.force_iptables_binary = BackendKind::iptables_nft;
  EXPECT_THAT(choose(options, {}, true).order, ElementsAre(iptables_nft));
  options.native_nftables = true;
  EXPECT_THAT(choose(options, {}, true).order, ElementsAre(nftables));
  options.backend = BackendKind::iptables_legacy;
  EXPECT_THAT(choose(options, {}, false).order, ElementsAre(iptables_legacy));
}

}  // namespace
}  // namespace sidetrack
