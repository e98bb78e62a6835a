// SPDX-License-Identifier: GPL-2.0-or-later
// Whom `apply --when-ready` waits for. That it waits is the matter of tests/kernel/state/when_ready_test.cc.
#include "state/when_ready.h"

#include <gtest/gtest.h>

#include "unit/asking.h"

namespace sidetrack {
namespace {

AwaitedProxy awaited(const char* options, std::uint16_t port) {
  CommandLine line;
  const HostFacts facts = asked(options, line);
  return awaited_proxy(line.config, plan(line.config, facts), port, std::chrono::seconds(3));
}

TEST(AwaitedProxyTest, IsLedToByTheRules) {
  using Led = AwaitedProxy::Led;
  const AwaitedProxy outbound = awaited("-i * -b *", 15001);
  EXPECT_EQ(outbound.port, 15001);
  EXPECT_EQ(outbound.timeout, std::chrono::seconds(3));
  EXPECT_EQ(outbound.led, Led::to_loopback);
  EXPECT_EQ(outbound.families, Families::both());
  EXPECT_EQ(outbound.uids, std::vector<std::uint32_t>{1337});
  EXPECT_EQ(awaited("-i * -b *", 15006).led, Led::anywhere);
  EXPECT_EQ(awaited("-i * -b * -k net1", 15001).led, Led::anywhere);
  EXPECT_EQ(awaited("-i * -b * --ip-families ipv4", 15001).families, Families(Family::ipv4));
  const AwaitedProxy other = awaited("-i * -b * --ip-families ipv4", 15090);
  EXPECT_EQ(other.led, Led::nothing);
  EXPECT_EQ(other.families, Families(Family::ipv4));
  EXPECT_EQ(awaited("-m NONE", 15001).led, Led::nothing);
}

TEST(AwaitedProxyTest, OfAmbientPodsHasNoUser) {
  EXPECT_TRUE(awaited("--dataplane ambient", 15001).uids.empty());
  EXPECT_EQ(awaited("-u 1,2", 15001).uids, (std::vector<std::uint32_t>{1, 2}));
}

}  // namespace
}  // namespace sidetrack
