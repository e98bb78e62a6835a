// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk/frames.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "walk/chain_index.h"

namespace sidetrack {
namespace {

using ::testing::IsEmpty;

LiveChain at(const std::string& table, Families families, const HookPoint& hook, const Target& target) {
  LiveChain chain{families, Table::other, "c", false, {}};
  chain.hook = hook;
  chain.table_name = table;
  LiveRule rule;
  rule.rule.matches = {UnknownMatch{"a frame"}};
  rule.rule.target = target;
  chain.rules = {rule};
  return chain;
}

class Frames : public ::testing::Test {
 protected:
  Frames() {
    pod.interfaces = {{"lo", {}}, {"eth0", {}}, {"v1", {}}, {"br0", {}}, {"br0.5", {}}, {"t0", {}}};
    pod.interface("br0")->is_bridge = true;
    pod.interface("br0")->lower = {"v1"};
    pod.interface("br0.5")->lower = {"br0"};
    pod.interface("t0")->lower = {"eth0", "t0"};  // a circle is no trap
  }

  [[nodiscard]] std::string below(const LiveChain& chain, Hook hook, const std::string& device) const {
    Live live;
    live.chains = {chain};
    return rules_of_frames(pod, std::span(&live, 1), hook, device);
  }

  PodView pod;
};

TEST_F(Frames, ABridgeHasRulesOfItsFamily) {
  for (const Hook hook : {Hook::prerouting, Hook::input, Hook::output, Hook::postrouting}) {
    LiveChain chain = at("bridge b", {}, {hook, 0, ChainType::filter, {}}, Verdict::drop);
    EXPECT_EQ(below(chain, Hook::ingress, "br0"), "rule 1 of bridge b c");
    EXPECT_EQ(below(chain, Hook::egress, "br0.5"), "rule 1 of bridge b c");
    EXPECT_THAT(below(chain, Hook::ingress, "eth0"), IsEmpty());
    EXPECT_THAT(below(chain, Hook::ingress, "t0"), IsEmpty());
    EXPECT_THAT(below(chain, Hook::ingress, "v1"), IsEmpty());
    chain.rules.front().rule.target = Verdict::accept;
    EXPECT_THAT(below(chain, Hook::ingress, "br0"), IsEmpty());
    chain.policy = Verdict::drop;
    EXPECT_EQ(below(chain, Hook::ingress, "br0"), "the policy of bridge b c");
    chain.dormant = true;
    EXPECT_THAT(below(chain, Hook::ingress, "br0"), IsEmpty());
  }
}

TEST_F(Frames, ADeviceBelowHasRulesOfItsOwn) {
  const LiveChain port = at("netdev b", Families::both(), {Hook::ingress, 0, ChainType::filter, "v1"}, Verdict::drop);
  EXPECT_EQ(below(port, Hook::ingress, "br0"), "rule 1 of netdev b c");
  EXPECT_EQ(below(port, Hook::ingress, "br0.5"), "rule 1 of netdev b c");
  EXPECT_THAT(below(port, Hook::egress, "br0"), IsEmpty());
  EXPECT_THAT(below(port, Hook::ingress, "v1"), IsEmpty()) << "its own are followed";
  EXPECT_THAT(below(port, Hook::ingress, "t0"), IsEmpty());
  const LiveChain lower = at("inet b", Families::both(), {Hook::egress, 0, ChainType::filter, "eth+"}, Jump{"x"});
  EXPECT_EQ(below(lower, Hook::egress, "t0"), "rule 1 of inet b c");
}

TEST_F(Frames, ThoseOfArpAreOfNoBridge) {
  const LiveChain arp = at("arp t", {}, {Hook::input, 0, ChainType::filter, {}}, Verdict::drop);
  Live live;
  live.chains = {arp};
  EXPECT_EQ(rules_of_arp(std::span(&live, 1), "eth0"), "rule 1 of arp t c");
  EXPECT_THAT(below(arp, Hook::ingress, "br0"), IsEmpty());
  live.chains = {at("bridge b", {}, {Hook::input, 0, ChainType::filter, {}}, Verdict::drop)};
  EXPECT_THAT(rules_of_arp(std::span(&live, 1), "eth0"), IsEmpty());
}

TEST_F(Frames, ADeviceIsNamedWhollyOrByItsBeginning) {
  EXPECT_TRUE(is_of_device({Hook::ingress, 0, ChainType::filter, "eth0"}, "eth0"));
  EXPECT_FALSE(is_of_device({Hook::ingress, 0, ChainType::filter, "eth0"}, "eth01"));
  EXPECT_TRUE(is_of_device({Hook::ingress, 0, ChainType::filter, "eth+"}, "eth01"));
  EXPECT_FALSE(is_of_device({Hook::ingress, 0, ChainType::filter, "eth+"}, "v1"));
  EXPECT_TRUE(is_of_device({Hook::ingress, 0, ChainType::filter, {}}, "v1"));
}

}  // namespace
}  // namespace sidetrack
