// SPDX-License-Identifier: GPL-2.0-or-later
// Which rules of those that were read decide about packets.
#include "library/packets.h"

#include <gmock/gmock.h>

#include "model/error.h"
#include "unit/live_rules.h"

namespace sidetrack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LiveRules : public ::testing::Test {
 protected:
  LiveRules() {
    for (const BackendKind kind : all_backends) survey.of(kind) = Live{};
    for (const BackendKind kind : all_backends) std::get<Live>(survey.of(kind)).backend = kind;
  }
  void add(BackendKind kind, const LiveChain& chain) { std::get<Live>(survey.of(kind)).chains.push_back(chain); }
  std::vector<BackendKind> read() {
    warnings.clear();
    std::vector<BackendKind> kinds;
    for (const Live& live : live_rules(survey, warnings)) kinds.push_back(live.backend);
    return kinds;
  }

  Survey survey;
  std::vector<std::string> warnings;
};

constexpr BackendKind legacy = BackendKind::iptables_legacy;
constexpr BackendKind nft = BackendKind::nftables;

TEST_F(LiveRules, AreOfBackendsThatHoldSomething) {
  LiveChain output = chain(Family::ipv4, Table::nat, "OUTPUT", false, {});
  add(legacy, output);
  EXPECT_THAT(read(), IsEmpty());
  output.policy = Verdict::drop;
  add(legacy, output);
  EXPECT_THAT(read(), ElementsAre(legacy));
  add(nft, chain(Family::ipv4, Table::nat, "OUTPUT", false, {{{}, Verdict::accept}}));
  EXPECT_THAT(read(), ElementsAre(nft, legacy)) << "the newest first";
  add(BackendKind::iptables_nft, chain(Family::ipv4, Table::nat, "ISTIO_OUTPUT", true, {}));
  EXPECT_EQ(read().size(), 3U) << "a chain of ours without rules is one, too";
  EXPECT_THAT(warnings, IsEmpty());
}

TEST_F(LiveRules, ThatCannotBeReadAreSaidOrRefused) {
  Unreadable security{Error(ExitCode::not_permitted, "CAP_NET_RAW is missing"), false};
  survey.of(legacy) = security;
  EXPECT_THAT(read(), IsEmpty());
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("CAP_NET_RAW is missing: its tables, which cannot hold rules")));
  security.may_hold_ours = true;
  survey.of(legacy) = security;
  EXPECT_THROW(static_cast<void>(read()), Error);
}

}  // namespace
}  // namespace sidetrack
