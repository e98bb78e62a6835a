// SPDX-License-Identifier: GPL-2.0-or-later
// What a backend writes reads back as the same rules. tests/fuzz/round_trip does the same with options at random.
#include "unit/kernel/round_trip.h"

#include <gtest/gtest.h>

#include "unit/asking.h"

namespace sidetrack {
namespace {

class RoundTrip : public ::testing::TestWithParam<const char*> {};

TEST_P(RoundTrip, EachBackendReadsWhatItWrites) {
  const Plan plan = planned(GetParam());
  for (const BackendKind backend : all_backends) EXPECT_EQ(lost_in_bytes(backend, plan.ruleset), "") << name(backend);
}

INSTANTIATE_TEST_SUITE_P(
    Options, RoundTrip,
    ::testing::Values(
        "", "-m TPROXY -t 1338 -b * -d 15090,15021", "-m TPROXY -b 80,443,8080 -c net1,veth+",
        "-b 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18 -i 10.0.0.0/9,10.1.2.0/23,fd00::/10,::/0",
        "-x 10.0.0.0/8,192.0.2.1/32,2001:db8::/33,fd00::1/128 -q 443 -o 53,8080 -k net1",
        "-x 10.0.0.0/24,10.0.1.0/24,10.0.2.0/24", "-m TPROXY -u 1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33",
        "-u 0,1337,4294967294 -g 3000 --redirect-dns --dns-server 10.96.0.10,fd00::a",
        "--redirect-dns --capture-all-dns --drop-invalid", "ISTIO_OUTBOUND_OWNER_GROUPS=1000,3000 -p 1 -z 65535 -e 256",
        "ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE=888 ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR=127.0.0.0/12 --ip-families ipv4"));

}  // namespace
}  // namespace sidetrack
