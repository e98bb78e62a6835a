// SPDX-License-Identifier: GPL-2.0-or-later
#include <gtest/gtest.h>

#include "rule/ruleset.h"

namespace sidetrack {
namespace {

Rule rule(std::vector<Match> matches) {
  return {Family::ipv4, Table::nat, "ISTIO_OUTPUT", std::move(matches), Verdict::return_, {}, {}};
}
AddressMatch to(const char* range, bool negated = false) {
  return {End::destination, {*AddressRange::parse(range)}, negated};
}

const ProtocolMatch only_tcp{Protocol::tcp, false};
const InterfaceMatch lo{InterfaceDirection::out, "lo", false};

TEST(SameEffect, TheOrderOfTheHeadersWordsDoesNotCount) {
  EXPECT_TRUE(same_effect(rule({lo, only_tcp, to("10.0.0.0/8")}), rule({to("10.0.0.0/8"), lo, only_tcp})));
  EXPECT_FALSE(same_effect(rule({lo, only_tcp}), rule({lo})));
  EXPECT_FALSE(same_effect(rule({lo}), rule({InterfaceMatch{InterfaceDirection::in, "lo", false}})));
}

TEST(SameEffect, WordsThatMatchEverythingDoNotCount) {
  EXPECT_TRUE(same_effect(rule({to("0.0.0.0/0"), only_tcp}), rule({only_tcp})));
  EXPECT_TRUE(same_effect(rule({to("::/0")}), rule({InterfaceMatch{InterfaceDirection::in, "+", false}})));
  EXPECT_FALSE(same_effect(rule({to("0.0.0.0/0", true)}), rule({}))) << "negated, it matches nothing";
  EXPECT_FALSE(same_effect(rule({to("0.0.0.0/1")}), rule({})));
}

}  // namespace
}  // namespace sidetrack
