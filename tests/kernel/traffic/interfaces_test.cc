// SPDX-License-Identifier: GPL-2.0-or-later
#include <gmock/gmock.h>

#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class Interfaces : public Traffic {
 protected:
  [[nodiscard]] Endpoint guest(std::uint16_t port) const { return {at().guest, port}; }
  [[nodiscard]] Endpoint pod_second(std::uint16_t port) const { return {at().pod_second, port}; }
  [[nodiscard]] std::string said(const std::string& command) const {
    return pod_->ns().program({"sh", "-c", program_under_test() + " " + command}).out;
  }
};
INSTANTIATE_TEST_SUITE_P(, Interfaces, settings(), setting_name);

TEST_P(Interfaces, AllAreCaptured) {
  apply(injected);
  EXPECT_EQ(connect(from_guest, pod_second(8080)), landed(Role::proxy_inbound, original(pod_second(8080))));
  EXPECT_EQ(connect(as_app, guest(80)), landed(Role::proxy_outbound, original(guest(80))));
}

TEST_P(Interfaces, ExcludedOnesAreNot) {
  apply("-b * -i * -c net1");
  EXPECT_EQ(connect(from_guest, pod_second(8080)), landed(Role::app, local(pod_second(8080))));
  EXPECT_EQ(connect(as_app, guest(80)), landed(Role::guest, local(guest(80))));
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::proxy_inbound, original(pod(8080))));
  EXPECT_EQ(connect(as_app, service(80)), landed(Role::proxy_outbound, original(service(80))));
}

// As iptables has it: net+ is every interface whose name begins so.
TEST_P(Interfaces, PatternsExcludeAllThatBeginSo) {
  for (const char* pattern : {"net+", "n+", "net1+"}) {
    apply(std::string("-b * -i * -c ") + pattern);
    EXPECT_EQ(connect(from_guest, pod_second(8080)), landed(Role::app, local(pod_second(8080)))) << pattern;
    EXPECT_EQ(connect(as_app, guest(80)), landed(Role::guest, local(guest(80)))) << pattern;
    EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::proxy_inbound, original(pod(8080)))) << pattern;
    EXPECT_EQ(connect(as_app, service(80)), landed(Role::proxy_outbound, original(service(80)))) << pattern;
  }
  apply("-b * -i * -c net2+");
  EXPECT_EQ(connect(from_guest, pod_second(8080)), landed(Role::proxy_inbound, original(pod_second(8080))));
}

// What passes through the pod from an interface is inbound traffic, unless the interface is a virtual machine's:
// then it is the machine's outbound traffic.
TEST_P(Interfaces, PassingTrafficIsInboundByDefault) {
  EXPECT_EQ(connect(from_guest, service(80)), landed(Role::outside, local(service(80))));
  apply(injected);
  EXPECT_EQ(connect(from_guest, service(80)), landed(Role::proxy_inbound, original(service(80))));
  EXPECT_THAT(said("map --way forward"),
              ContainsRegex("forwarded tcp, from net1, IPv4\n  everything but what follows +-> 10\\.2\\.0\\.2:15006 "));
  EXPECT_THAT(said("map --way in"), Not(HasSubstr("forwarded")));
  EXPECT_THAT(said("lint"), HasSubstr("ST013"));
  EXPECT_THAT(said("show"), HasSubstr("forwarded TCP from net1 goes to port 15006"));
}

TEST_P(Interfaces, TrafficOfVirtualOnesIsOutbound) {
  apply("-b * -i * -k net1");
  EXPECT_THAT(said("map --way forward"),
              ContainsRegex("forwarded tcp, from net1, IPv4\n  everything[a-z ]* -> 10\\.2\\.0\\.2:15001 "));
  EXPECT_THAT(said("lint"), Not(HasSubstr("ST013")));
  EXPECT_EQ(connect(from_guest, service(80)), landed(Role::proxy_outbound, original(service(80))));
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::proxy_inbound, original(pod(8080))));
}

TEST_P(Interfaces, PatternsAreVirtualOnes) {
  apply("-b * -i * -k net+");
  EXPECT_EQ(connect(from_guest, service(80)), landed(Role::proxy_outbound, original(service(80))));
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::proxy_inbound, original(pod(8080))));
}

TEST_P(Interfaces, TrafficOfVirtualOnesIsOutboundWithinTheIncludedRange) {
  apply("-b * -k net1 -i " + both(&Addresses::service_range));
  EXPECT_EQ(connect(from_guest, service(80)), landed(Role::proxy_outbound, original(service(80))));
  EXPECT_EQ(connect(from_guest, other_service(80)), landed(Role::outside, local(other_service(80))));
}

}  // namespace
}  // namespace sidetrack::netns
