// SPDX-License-Identifier: GPL-2.0-or-later
// The kernel asks nat about connections that it tracks, and tracks them while any rule needs it. Rules that are not
// understood may.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evaluate/explain.h"
#include "unit/asking.h"
#include "unit/live_rules.h"

namespace sidetrack {
namespace {

using Kind = Outcome::Kind;

// By nat OUTPUT with one rule, and a rule of another table that no packet meets.
Outcome outcome(const Target& of_nat, const std::vector<Match>& other_matches, const Target& other) {
  Live live;
  live.backend = BackendKind::iptables_legacy;
  live.chains = {chain(Families::both(), Table::nat, "OUTPUT", false, {{{}, of_nat}}),
                 chain(Families::both(), Table::filter, "UNUSED", false, {{other_matches, other}})};
  return explain(packet_of("out tcp 192.0.2.77:80"), assumed_pod(planned("")), {&live, 1}).outcome;
}

TEST(Tracking, NatIsAskedWhereARuleNeedsIt) {
  const ConntrackStateMatch established{ConntrackStateMatch::established, false};
  const std::vector<std::pair<std::vector<Match>, Target>> needs{
      {{established}, Verdict::drop},
      {{}, Redirect{1}},
      {{}, Connmark::save},
      {{}, Connmark::restore},
      {{}, CtZone{1}},
      {{}, SetConnmark{1, ~0U}},
      {{}, Notrack{}},
      {{ConnmarkMatch{}}, Continue{}},
      {{UnknownMatch{"-m x"}, established}, UnknownTarget{"-j X"}}};
  for (const auto& [matches, target] : needs) {
    const Outcome found = outcome(Verdict::drop, matches, target);
    EXPECT_EQ(found.kind, Kind::dropped) << target.index() << ": " << found.why;
  }
}

TEST(Tracking, NatIsNotAskedWhereNoRuleNeedsIt) {
  const std::vector<std::pair<std::vector<Match>, Target>> harmless{
      {{}, Verdict::accept}, {{}, Jump{"OTHER"}}, {{}, Tproxy{1, 1, 1}}, {{MarkMatch{}}, SetMark{1, ~0U}},
      {{}, Continue{}},      {{}, Reject{}}};
  for (const auto& [matches, target] : harmless)
    EXPECT_EQ(outcome(Verdict::drop, matches, target).kind, Kind::leaves) << target.index();
}

TEST(Tracking, IsNotKnownWhereARuleThatIsNotUnderstoodMayNeedIt) {
  const std::vector<std::pair<std::vector<Match>, Target>> may{
      {{UnknownMatch{"-m x"}}, Verdict::drop}, {{}, UnknownTarget{"-j X"}}, {{}, Continue{"-j LOG"}}};
  for (const auto& [matches, target] : may) {
    const Outcome dropped = outcome(Verdict::drop, matches, target);
    EXPECT_EQ(dropped.kind, Kind::unknown) << target.index();
    EXPECT_EQ(dropped.why,
              "whether the kernel tracks connections: it asks nat only then, and no rule that is understood needs it");
    EXPECT_EQ(outcome(SetMark{1, ~0U}, matches, target).kind, Kind::unknown) << target.index();
    // Where nat does nothing, or a rule of it needs connections, all is known.
    EXPECT_EQ(outcome(Verdict::accept, matches, target).kind, Kind::leaves) << target.index();
    EXPECT_EQ(outcome(Redirect{15001}, matches, target).kind, Kind::lands) << target.index();
  }
}

// A rule may exempt the request, and another is not known of the answer: each of the four ways counts.
TEST(Tracking, OfARequestDecidesAboutItsAnswersWhateverElseIsNotKnown) {
  const OwnerMatch somebody{OwnerKind::uid, {{1000, 1000}}, false};
  for (const bool second : {false, true}) {
    Live live;
    live.backend = BackendKind::iptables_legacy;
    live.chains = {
        chain(Families::both(), Table::nat, "OUTPUT", false, {{{ProtocolMatch{Protocol::tcp, false}}, Redirect{83}}}),
        chain(Families::both(), Table::raw, "PREROUTING", false, {{{UnknownMatch{"-m x"}}, Notrack{}}})};
    if (second)
      live.chains.push_back(chain(Families::both(), Table::filter, "OUTPUT", false, {{{somebody}, Verdict::return_}}));
    const Outcome found = explain(packet_of("in tcp :80"), assumed_pod(planned("")), {&live, 1}).outcome;
    EXPECT_EQ(found.answers, Outcome::Answers::unknown) << second;
  }
}

}  // namespace
}  // namespace sidetrack
