// SPDX-License-Identifier: GPL-2.0-or-later
// Rules as iptables-nft writes them: what it has no expressions for.
#include "kernel/nft/iptables_rule.h"

#include <fmt/format.h>
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
  EXPECT_THROW(written({}, NonTerminating{"-j LOG"}), std::logic_error);
  EXPECT_NO_THROW(written({}, NonTerminating{}));
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

// The kernel checks an extension with the protocol of the rule around it.
TEST(IptablesRule, ExtensionsAreToldTheProtocol) {
  const auto compat = [](std::vector<Match> matches, Target target = Verdict::return_) {
    const auto found = written(std::move(matches), std::move(target)).compat;
    return found ? fmt::format("{}{}", found->flags == 0 ? "" : "! ", found->protocol) : "none";
  };
  const ProtocolMatch tcp{Protocol::tcp, false};
  const OwnerMatch owner{OwnerKind::uid, {{1, 1}}, false};
  EXPECT_EQ(compat({tcp}), "none");
  EXPECT_EQ(compat({tcp, PortMatch{End::destination, {{80, 80}}, false}, MarkMatch{1, 1, false}}), "none");
  EXPECT_EQ(compat({tcp}, Jump{"X"}), "none");
  EXPECT_EQ(compat({owner}), "0");
  EXPECT_EQ(compat({tcp, owner}), "6");
  EXPECT_EQ(compat({ProtocolMatch{Protocol::udp, true}, owner}), "! 17");
  EXPECT_EQ(compat({tcp}, Redirect{15001}), "6");
  EXPECT_EQ(compat({}, CtZone{1}), "0");
}

}  // namespace
}  // namespace sidetrack::nft
