// SPDX-License-Identifier: GPL-2.0-or-later
// What commands say in a sentence, of each way that they may end.
#include "library/sentences.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "kernel/survey.h"
#include "unit/asking.h"

namespace sidetrack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ApplyResult result(std::optional<BackendKind> backend, const char* options = "-i * -b * --ip-families ipv4") {
  ApplyResult made;
  made.applied = Applied::changed;
  made.backend = backend;
  if (backend) made.canonical = canonical(*backend, planned(options).ruleset);
  return made;
}

constexpr auto by_iptables_nft = BackendKind::iptables_nft;

TEST(Sentences, OfApply) {
  EXPECT_EQ(applied(result(by_iptables_nft)), "installed 15 rules in nat (ipv4) through iptables-nft");
  EXPECT_EQ(applied(result(by_iptables_nft), Milliseconds(1.25)),
            "installed 15 rules in nat (ipv4) through iptables-nft in 1.2 ms");
  EXPECT_EQ(applied(result(by_iptables_nft, "-m TPROXY -i * -b * --drop-invalid")),
            "installed 58 rules in mangle, nat (ipv4, ipv6) through iptables-nft");
  EXPECT_EQ(applied(result(BackendKind::nftables, "-i * -b * --redirect-dns --capture-all-dns")),
            "installed 30 rules in raw, nat (ipv4, ipv6) through nftables");
  ApplyResult of_both = result(BackendKind::iptables_legacy);
  of_both.because = "legacy tables are in use here";
  of_both.left = {by_iptables_nft, BackendKind::nftables};
  EXPECT_EQ(
      applied(of_both, Milliseconds(2)),
      "installed 15 rules in nat (ipv4) through iptables-legacy in 2.0 ms (legacy tables are in use here); removed "
      "those in iptables-nft; removed those in nftables");
  EXPECT_EQ(checked(of_both),
            "the kernel would accept 15 rules in nat (ipv4) through iptables-legacy; apply would remove those in "
            "iptables-nft; apply would remove those in nftables; nothing was changed");
  ApplyResult same = result(by_iptables_nft);
  same.applied = Applied::unchanged;
  EXPECT_EQ(applied(same), "nothing to change: 15 rules in nat (ipv4) through iptables-nft already as requested");
  EXPECT_EQ(checked(same), applied(same));
}

TEST(Sentences, ShowTheFirstOfManyWarnings) {
  ApplyResult many = result(by_iptables_nft);
  many.warnings = {"first"};
  for (int i = 1; i <= 8; ++i) many.obstacles.push_back({fmt::format("rule {}", i), "out udp", "a", "b"});
  EXPECT_EQ(warnings(many).size(), 9U);
  EXPECT_EQ(warnings(many).back(), "rule 8: `out udp` b; as requested it a");
  many.obstacles.push_back({"rule 9", "out udp", "a", "b"});
  ASSERT_EQ(warnings(many).size(), 10U);
  EXPECT_EQ(warnings(many).back(), "8 of 9 such warnings are shown; 'sidetrack verify' shows all of them");
}

TEST(Sentences, OfNoRules) {
  ApplyResult none = result({});
  none.left = {by_iptables_nft};
  EXPECT_EQ(applied(none), "removed all rules and routes of the mesh from iptables-nft: none are requested");
  EXPECT_EQ(applied(none, Milliseconds(3)),
            "removed all rules and routes of the mesh from iptables-nft in 3.0 ms: none are requested");
  EXPECT_EQ(checked(none), "no rules are requested; apply would remove those in iptables-nft; nothing was changed");
  none.left.push_back(BackendKind::nftables);
  EXPECT_EQ(cleaned(none), "removed all rules and routes of the mesh from iptables-nft, nftables");
  none.left.clear();
  EXPECT_EQ(cleaned(none), "removed all rules and routes of the mesh");
  none.applied = Applied::unchanged;
  EXPECT_EQ(cleaned(none), "nothing to remove");
  EXPECT_EQ(applied(none), "nothing to change: no rules are requested, and none are there");
  ApplyResult empty = result(by_iptables_nft);
  empty.canonical = {};
  EXPECT_EQ(applied(empty), "installed no rules through iptables-nft");
}

TEST(Sentences, OfVerify) {
  PodDiff pod_diff;
  EXPECT_EQ(verified(pod_diff), "rules and routes are as requested");
  pod_diff.backend = by_iptables_nft;
  EXPECT_EQ(verified(pod_diff), "rules and routes are as requested, through iptables-nft");
  pod_diff.obstacles = {{"many rules", "", "", "", false}};
  EXPECT_EQ(verified(pod_diff),
            "the rules and routes are as requested, but something that Sidetrack must not change may keep traffic from "
            "the proxy");
  pod_diff.obstacles.push_back({"rule 1 of filter OUTPUT", "out tcp :80", "lands", "dropped"});
  EXPECT_EQ(
      verified(pod_diff),
      "the rules and routes are as requested, but something that Sidetrack must not change keeps traffic from the "
      "proxy");
  pod_diff.missing.loopback_addresses = {*Address::parse("::6")};
  EXPECT_EQ(verified(pod_diff),
            "the pod differs from the requested rules; 'sidetrack apply' with these options would install them");
  EXPECT_EQ(verified(pod_diff, "X"),
            "the pod differs from the requested rules; 'sidetrack apply' with X would install them");
  pod_diff.refusal = "somebody else's";
  EXPECT_EQ(verified(pod_diff),
            "the pod differs from the requested rules; 'sidetrack apply' would refuse to change that");
  pod_diff.backends.resize(2);
  pod_diff.backends[1].warnings = {"a warning"};
  EXPECT_THAT(warnings(pod_diff), ElementsAre("a warning", text(pod_diff.obstacles[0]), text(pod_diff.obstacles[1]),
                                              "apply would refuse: somebody else's"));
  ApplyResult applied;
  applied.warnings = {"another"};
  applied.obstacles = pod_diff.obstacles;
  EXPECT_THAT(warnings(applied), ElementsAre("another", text(pod_diff.obstacles[0]), text(pod_diff.obstacles[1])));
}

}  // namespace
}  // namespace sidetrack
