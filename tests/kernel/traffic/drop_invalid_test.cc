// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/network.h"
#include "support/stray_packet.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

class DropInvalid : public Traffic {
 protected:
  // Is a segment that belongs to no connection answered (by a reset)? Each from a port of its own.
  [[nodiscard]] bool answered(std::uint16_t from_port, std::uint8_t flags) const {
    return is_answered(pod_->at(Place::outside), {at().client, from_port}, pod(8080), flags);
  }
  // By default (nf_conntrack_tcp_loose) connection tracking takes an unknown ACK for one of a connection that began
  // before it watched, not for an invalid one.
  void be_strict() const { set_sysctl(pod_->ns(), "netfilter/nf_conntrack_tcp_loose", "0"); }
};
INSTANTIATE_TEST_SUITE_P(, DropInvalid, settings(), setting_name);

TEST_P(DropInvalid, DropsSegmentsOfNoConnection) {
  EXPECT_TRUE(answered(42000, ack));
  EXPECT_TRUE(answered(42010, syn | ack));
  apply("-i * --drop-invalid");
  EXPECT_FALSE(answered(42020, syn | ack));
  be_strict();
  EXPECT_FALSE(answered(42030, ack));
}

TEST_P(DropInvalid, IsOffByDefault) {
  apply(injected);
  be_strict();
  EXPECT_TRUE(answered(42000, ack));
  EXPECT_TRUE(answered(42010, syn | ack));
}

TEST_P(DropInvalid, LeavesConnectionsAsTheyAre) {
  apply(std::string(injected) + " --drop-invalid");
  EXPECT_EQ(connect(from_outside, pod(8080)), landed(Role::proxy_inbound, original(pod(8080))));
  EXPECT_EQ(connect(as_app, service(80)), landed(Role::proxy_outbound, original(service(80))));
}

}  // namespace
}  // namespace sidetrack::netns
