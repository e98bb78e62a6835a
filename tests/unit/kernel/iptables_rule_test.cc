// SPDX-License-Identifier: GPL-2.0-or-later
// Rules as iptables-nft writes them: what it has no expressions for.
#include "kernel/nft/iptables_rule.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace sidetrack::nft {
namespace {

IptablesRule written(std::vector<Match> matches, Target target = Verdict::return_) {
  return iptables_rule({Family::ipv4, Table::nat, "ISTIO_OUTPUT", std::move(matches), std::move(target), {}, {}},
                       Family::ipv4);
}
AddressMatch to(const char* range) { return {End::destination, {*AddressRange::parse(range)}, false}; }

TEST(IptablesRule, RefusesWhatIptablesCannotHold) {
  AddressMatch two = to("10.0.0.0/8");
  two.ranges.push_back(*AddressRange::parse("11.0.0.0/8"));
  EXPECT_THROW(written({two}), std::logic_error);
  AddressMatch no_prefix = to("10.0.0.0/8");
  no_prefix.ranges.front().last.bytes[3] = 3;
  EXPECT_THROW(written({no_prefix}), std::logic_error);
  EXPECT_THROW(written({to("fd00::/8")}), std::logic_error);
  EXPECT_NO_THROW(written({to("10.0.0.0/8")}));
  EXPECT_THROW(written({InterfaceMatch{InterfaceDirection::out, "+", true}}), std::logic_error);
  EXPECT_THROW(written({}, Continue{"-j LOG"}), std::logic_error);
  EXPECT_NO_THROW(written({}, Continue{}));
}

// Any interface, any address: iptables writes nothing for it.
TEST(IptablesRule, WhatHoldsOfEveryPacketIsNotCompared) {
  const std::size_t without = written({}).expressions.size();
  EXPECT_EQ(written({InterfaceMatch{InterfaceDirection::in, "+", false}}).expressions.size(), without);
  EXPECT_EQ(written({to("0.0.0.0/0")}).expressions.size(), without);
  AddressMatch none = to("0.0.0.0/0");
  none.negated = true;
  EXPECT_GT(written({none}).expressions.size(), without);
}

}  // namespace
}  // namespace sidetrack::nft
