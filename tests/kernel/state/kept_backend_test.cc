// SPDX-License-Identifier: GPL-2.0-or-later
// `auto` stays with the backend that holds the sidecar's rules, whatever comes into use beside it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/kernel_test.h"
#include "support/listing.h"
#include "support/network.h"
#include "support/traffic.h"
#include "support/words.h"

namespace sidetrack::netns {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Words usual{"--ip-families", "ipv4,ipv6", "-i", "*", "-b", "*", "-d", "15090,15021,15020"};
const Words dns{"--ip-families", "ipv4,ipv6",      "-i",           "*",         "-b", "80", "-x",
                "10.1.0.0/16",   "--redirect-dns", "--dns-server", "10.96.0.10"};

class KeptBackend : public KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) ip(ns_, "link set lo up\n");
  }
  [[nodiscard]] Output sidetrack(const char* command, const Words& options) const {
    return ns_.program(Words{program_under_test(), command} + options);
  }
  void begin_to_use_legacy() const { ns_.must({"iptables-legacy", "-A", "INPUT", "-p", "udp", "-j", "ACCEPT"}); }
  // Which backends hold rules of the mesh.
  [[nodiscard]] std::string holders() const {
    std::string found;
    if (ns_.must({"iptables-legacy-save"}).find("ISTIO_OUTPUT") != std::string::npos) found += "iptables-legacy ";
    if (ns_.must({"iptables-nft-save"}).find("ISTIO_OUTPUT") != std::string::npos) found += "iptables-nft ";
    if (ns_.must({"nft", "list", "tables"}).find("inet sidetrack") != std::string::npos) found += "nftables ";
    return found;
  }
  [[nodiscard]] static std::string held() { return std::string(GetParam()) + " "; }

  Namespace ns_;
};
INSTANTIATE_TEST_SUITE_P(, KeptBackend, ::testing::Values("iptables-nft", "nftables"), backend_name);

TEST_P(KeptBackend, ALegacyTableOfAnotherProgramMovesNothing) {
  ASSERT_EQ(sidetrack("apply", Words{"--backend", GetParam()} + usual).exit_code, 0);
  begin_to_use_legacy();
  const std::string before = listing(ns_);
  const Output verified = sidetrack("verify", usual);
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  EXPECT_EQ(sidetrack("diff", usual).exit_code, 0);
  EXPECT_EQ(sidetrack("diff", Words{"--effect"} + usual).exit_code, 0);
  const Output again = sidetrack("apply", usual);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("nothing to change"));
  EXPECT_EQ(listing(ns_), before) << "handles, too";
  EXPECT_THAT(sidetrack("doctor", {}).out, HasSubstr("apply would use " + std::string(GetParam())));
}

TEST_P(KeptBackend, OtherOptionsReplaceTheRulesWhereTheyAre) {
  ASSERT_EQ(sidetrack("apply", Words{"--backend", GetParam()} + usual).exit_code, 0);
  begin_to_use_legacy();
  EXPECT_THAT(sidetrack("diff", dns).out, Not(HasSubstr("iptables-legacy")));
  const Output applied = sidetrack("apply", dns);
  EXPECT_EQ(applied.exit_code, 0) << applied.err;
  EXPECT_THAT(applied.err, HasSubstr("through " + std::string(GetParam())));
  EXPECT_EQ(holders(), held());
  EXPECT_EQ(sidetrack("verify", dns).exit_code, 0);
  EXPECT_EQ(sidetrack("apply", Words{"--force-apply"} + dns).exit_code, 0);
  EXPECT_EQ(holders(), held());
}

TEST_P(KeptBackend, WhatIsNamedMovesThem) {
  const Words ways[] = {{"--backend", "iptables-legacy"}, {"--force-iptables-binary", "legacy"}};
  for (const Words& named : ways) {
    ASSERT_EQ(sidetrack("apply", Words{"--backend", GetParam()} + usual).exit_code, 0);
    begin_to_use_legacy();
    EXPECT_EQ(sidetrack("verify", named + usual).exit_code, 6);
    EXPECT_EQ(sidetrack("apply", named + usual).exit_code, 0);
    EXPECT_EQ(holders(), "iptables-legacy ");
    EXPECT_EQ(sidetrack("verify", usual).exit_code, 0);
    EXPECT_THAT(sidetrack("apply", usual).err, HasSubstr("nothing to change"));
  }
  EXPECT_EQ(sidetrack("apply", Words{"--native-nftables"} + usual).exit_code, 0);
  EXPECT_EQ(holders(), "nftables ");
  EXPECT_EQ(sidetrack("verify", usual).exit_code, 0);
}

// Rules of others' options in a second backend: what is as requested stays, and the rest goes.
TEST_P(KeptBackend, OfTwoBackendsTheOneThatIsAsRequestedStays) {
  ASSERT_EQ(sidetrack("apply", Words{"--backend", GetParam()} + usual).exit_code, 0);
  ns_.must({"iptables-legacy-restore", "--noflush"},
           "*nat\n-N ISTIO_REDIRECT\n-N ISTIO_OUTPUT\n-A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001\n"
           "-A OUTPUT -j ISTIO_OUTPUT\n-A ISTIO_OUTPUT -j ISTIO_REDIRECT\nCOMMIT\n");
  EXPECT_EQ(sidetrack("verify", usual).exit_code, 6);
  EXPECT_EQ(sidetrack("apply", usual).exit_code, 0);
  EXPECT_EQ(holders(), held());
  EXPECT_EQ(sidetrack("verify", usual).exit_code, 0);
}

}  // namespace
}  // namespace sidetrack::netns
