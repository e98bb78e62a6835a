// SPDX-License-Identifier: GPL-2.0-or-later
// net.ipv4.conf.*.rp_filter: what comes in by an interface by which its answers would not leave.
#include <gmock/gmock.h>

#include "support/network.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SourceFilterTest : public Traffic {
 protected:
  // The service is reached by a second interface; what it sends comes in by the first one all the same.
  void SetUp() override {
    Traffic::SetUp();
    if (!pod_) return;
    const Namespace& outside = pod_->at(Place::outside);
    join(pod_->ns(), "eth1", outside, "pod1");
    ip(pod_->ns(), "addr add 10.3.0.2/24 dev eth1\naddr add fd00:3::2/64 dev eth1\n");
    ip(outside, "addr add 10.3.0.1/24 dev pod1\naddr add fd00:3::1/64 dev pod1\n");
    wait_for_addresses(pod_->ns());
    wait_for_addresses(outside);
    ip(pod_->ns(), "route add " + std::string(at().service) + " via " +
                       (family() == Family::ipv4 ? "10.3.0.1" : "fd00:3::1") + "\n");
    apply(injected);
  }
  [[nodiscard]] Landing from_service() const {
    return pod_->connect(from_outside, {.to = pod(8080), .protocol = Protocol::tcp, .from = Endpoint(at().service, 0)});
  }
  void set(const char* of, const char* value) const {
    set_sysctl(pod_->ns(), std::string("ipv4/conf/") + of + "/rp_filter", value);
  }
  [[nodiscard]] std::string explained() const {
    return pod_->ns().must({program_under_test(), "explain", "in", "tcp", pod(8080).text(), "--from",
                            std::string(at().service), "--in-interface", "eth0"});
  }
};
INSTANTIATE_TEST_SUITE_P(, SourceFilterTest, settings(), setting_name);

TEST_P(SourceFilterTest, AStrictOneDropsWhatIsAnsweredByAnotherInterface) {
  const Landing lands = landed(Role::proxy_inbound, original(pod(8080)));
  EXPECT_EQ(from_service(), lands);
  for (const char* of : {"all", "eth0"}) {
    set(of, "1");
    const bool lost = family() == Family::ipv4;
    EXPECT_EQ(from_service(), lost ? landed(Role::no_answer) : lands);
    const char* why = "dropped: rp_filter of eth0 is 1, and the way back to 10.96.0.10 is by eth1";
    EXPECT_THAT(explained(), lost ? ::testing::Matcher<std::string>(HasSubstr(why)) : Not(HasSubstr("rp_filter")));
    EXPECT_EQ(connect(from_outside, pod(8080)), lands);  // whose answers leave as it came
    set(of, "2");
    EXPECT_EQ(from_service(), lands);
    EXPECT_THAT(explained(), Not(HasSubstr("rp_filter")));
    set(of, "0");
  }
  set("eth1", "1");  // not the one it comes in by
  EXPECT_EQ(from_service(), lands);
  EXPECT_THAT(explained(), Not(HasSubstr("rp_filter")));
}

// Connections are marked, and their answers have a way by the mark; sources are looked up without it.
TEST_P(SourceFilterTest, ALooseOneDropsWhatHasNoWayBack) {
  if (family() == Family::ipv6) return;  // has no such setting
  const Landing lands = landed(Role::proxy_inbound, original(pod(8080)));
  const Namespace& inside = pod_->ns();
  set_sysctl(inside, "ipv4/tcp_fwmark_accept", "1");
  inside.must({"nft",
               "add table ip marks; add chain ip marks in { type filter hook prerouting priority -150; };"
               "add rule ip marks in ip saddr 10.96.0.10 meta mark set 7"});
  ip(inside,
     "route add default via 10.1.0.1 dev eth0 table 200\nrule add fwmark 7 lookup 200\n"
     "route replace unreachable 10.96.0.10\n");
  EXPECT_EQ(from_service(), lands);
  EXPECT_THAT(explained(), Not(HasSubstr("rp_filter")));
  set("all", "2");
  EXPECT_EQ(from_service(), landed(Role::no_answer));
  EXPECT_THAT(explained(), HasSubstr("dropped: rp_filter of eth0 is 2, and there is no route to 10.96.0.10 (ip route "
                                     "unreachable 10.96.0.10"));
  set_sysctl(inside, "ipv4/conf/all/src_valid_mark", "1");
  EXPECT_EQ(from_service(), lands);
  EXPECT_THAT(explained(), Not(HasSubstr("rp_filter")));
}

}  // namespace
}  // namespace sidetrack::netns
