// SPDX-License-Identifier: GPL-2.0-or-later
// Rules of another mesh are named where they are shown, and where Sidetrack's come beside them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/kernel_test.h"
#include "support/network.h"
#include "support/traffic.h"
#include "support/words.h"

namespace sidetrack::netns {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// As linkerd2-proxy-init writes them.
constexpr const char* of_linkerd =
    "*nat\n:PROXY_INIT_OUTPUT - [0:0]\n:PROXY_INIT_REDIRECT - [0:0]\n"
    "-A PREROUTING -m comment --comment proxy-init/install-proxy-init-prerouting -j PROXY_INIT_REDIRECT\n"
    "-A OUTPUT -m comment --comment proxy-init/install-proxy-init-output -j PROXY_INIT_OUTPUT\n"
    "-A PROXY_INIT_OUTPUT -m owner --uid-owner 2102 -m comment --comment proxy-init/ignore-proxy-user-id -j RETURN\n"
    "-A PROXY_INIT_OUTPUT -o lo -m comment --comment proxy-init/ignore-loopback -j RETURN\n"
    "-A PROXY_INIT_OUTPUT -p tcp -j REDIRECT --to-ports 4140\n"
    "-A PROXY_INIT_REDIRECT -p tcp -m multiport --dports 4190,4191 -j RETURN\n"
    "-A PROXY_INIT_REDIRECT -p tcp -j REDIRECT --to-ports 4143\nCOMMIT\n";

class OtherMeshes : public KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ip(pod_,
       "link set lo up\nlink add eth0 type veth peer name eth1\naddress add 10.1.2.3/24 dev eth0\nlink set eth0 up\n"
       "link set eth1 up\nroute add default via 10.1.2.1\n");
    pod_.must({fmt::format("iptables-{}-restore", GetParam())}, of_linkerd);
  }
  [[nodiscard]] Output sidetrack(const Words& words) const { return pod_.program(Words{program_under_test()} + words); }
  Namespace pod_;
};
INSTANTIATE_TEST_SUITE_P(, OtherMeshes, ::testing::Values("nft", "legacy"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(OtherMeshes, AreNamed) {
  const std::string shown = sidetrack({"show"}).out;
  EXPECT_THAT(shown, HasSubstr("nat PROXY_INIT_OUTPUT [Linkerd]"));
  EXPECT_THAT(shown, HasSubstr("4140 (Linkerd outbound)"));
  EXPECT_THAT(sidetrack({"explain", "out", "tcp", "10.96.0.10:80", "--uid", "1000"}).out,
              HasSubstr("127.0.0.1:4140 (Linkerd outbound)"));
  const Output linted = sidetrack({"lint"});
  EXPECT_THAT(linted.err, HasSubstr("but those of Linkerd"));
  EXPECT_THAT(linted.err, Not(HasSubstr("nothing is captured")));
}

TEST_P(OtherMeshes, AreWarnedOfOnceAndStay) {
  const Output applied = sidetrack({"apply", "-u", "1337", "-i", "*", "-b", "*"});
  EXPECT_EQ(applied.exit_code, 0) << applied.err;
  EXPECT_THAT(applied.err, HasSubstr("rules of Linkerd are here, too"));
  const auto first = applied.err.find("rules of Linkerd");
  EXPECT_EQ(applied.err.find("rules of Linkerd", first + 1), std::string::npos);
  EXPECT_EQ(sidetrack({"clean"}).exit_code, 0);
  EXPECT_THAT(pod_.must({fmt::format("iptables-{}-save", GetParam())}), HasSubstr("--to-ports 4143"));
}

}  // namespace
}  // namespace sidetrack::netns
