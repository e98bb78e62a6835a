// SPDX-License-Identifier: GPL-2.0-or-later
// What the other tests rest on, without the program under test.
#include <gmock/gmock.h>

#include <chrono>
#include <optional>
#include <thread>

#include "support/kernel_test.h"
#include "support/network.h"
#include "support/pod.h"

namespace sidetrack::netns {
namespace {

using NamespaceTest = KernelTest;

TEST_F(NamespaceTest, HoldsNothingButALoopbackInterface) {
  EXPECT_THAT(Namespace().must({"ip", "-brief", "link"}), ::testing::MatchesRegex("lo +DOWN .*\n"));
}

TEST_F(NamespaceTest, RunsProgramsUnderOtherIds) {
  const Namespace space;
  const Output output = space.program({"sh", "-c", "cat; id -u; id -g; id -G; echo $WORD >&2; exit 7"}, "input\n",
                                      {"WORD=said"}, {1337, 1338});
  EXPECT_EQ(output.out, "input\n1337\n1338\n1338\n");
  EXPECT_EQ(output.err, "said\n");
  EXPECT_EQ(output.exit_code, 7);
}

TEST_F(NamespaceTest, LeavesTheCallingThreadAsItWas) {
  const Namespace space;
  EXPECT_EQ(space.run([] { return geteuid(); }, {1000, 1000}), 1000U);
  EXPECT_EQ(geteuid(), 0U);
}

// The end of a veth pair goes when the namespace of the other end goes.
TEST_F(NamespaceTest, IsGoneWithItsObject) {
  const Namespace stays;
  {
    const Namespace goes;
    join(stays, "here", goes, "there");
    EXPECT_EQ(stays.program({"ip", "link", "show", "here"}).exit_code, 0);
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (stays.program({"ip", "link", "show", "here"}).exit_code == 0)
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "the namespace outlives its object";
}

class PodTest : public KernelTest, public ::testing::WithParamInterface<Family> {
 protected:
  [[nodiscard]] const Addresses& at() const { return addresses(GetParam()); }
};

// Everybody reaches everybody without rules: what a rule changes is then the rule's doing.
TEST_P(PodTest, ReachesWhatIsAsked) {
  const Pod pod;
  const auto lands = [&](const Actor& actor, const Endpoint& to, Role role, Protocol protocol = Protocol::tcp) {
    EXPECT_EQ(pod.connect(actor, {.to = to, .protocol = protocol, .from = {}}), landed(role, local(to)));
  };
  lands(from_outside, {at().pod, 8080}, Role::app);
  lands(from_outside, {at().pod, 15006}, Role::proxy_inbound);
  lands(as_app, {at().any_loopback, 8080}, Role::app);
  lands(as_app, {at().pod, 8080}, Role::app);
  lands(as_proxy, {at().service, 80}, Role::outside);
  lands(as_proxy_group, {at().excluded, 443}, Role::outside);
  lands(as_app, {at().dns, 53}, Role::outside, Protocol::udp);
  lands(as_app, {at().dns, 53}, Role::outside);
  lands(from_guest, {at().pod_second, 8080}, Role::app);
  lands(from_guest, {at().service, 80}, Role::outside);
  lands(as_app, {at().guest, 80}, Role::guest);
}

TEST_P(PodTest, TellsThatNobodyListens) {
  const Pod pod;
  EXPECT_EQ(pod.connect(from_outside, {.to = {at().pod, 9}, .from = {}}), landed(Role::refused));
  EXPECT_EQ(pod.connect(as_app, {.to = {at().pod, 9}, .protocol = Protocol::udp, .from = {}}), landed(Role::refused));
}

INSTANTIATE_TEST_SUITE_P(, PodTest, ::testing::Values(Family::ipv4, Family::ipv6),
                         [](const auto& setting) { return std::string(name(setting.param)); });

}  // namespace
}  // namespace sidetrack::netns
