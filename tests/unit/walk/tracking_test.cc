// SPDX-License-Identifier: GPL-2.0-or-later
// The kernel asks nat about connections that it tracks, and tracks them while any rule needs it. Rules that are not
// understood may.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/asking.h"
#include "unit/live_rules.h"
#include "walk/explain.h"

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
      {{ConnmarkMatch{}}, NonTerminating{}},
      {{UnknownMatch{"-m x"}, established}, UnknownTarget{"-j X"}},
      {{UnknownMatch{"-m conntrack --ctexpire 5"}}, UnknownTarget{"-j X"}},
      {{UnknownMatch{"ct original packets > 5"}}, NonTerminating{}},
      {{}, UnknownTarget{"dnat to what it looks up"}},
      {{}, UnknownTarget{"-j DNAT --anything"}}};
  for (const auto& [matches, target] : needs) {
    const Outcome found = outcome(Verdict::drop, matches, target);
    EXPECT_EQ(found.kind, Kind::dropped) << target.index() << ": " << found.why;
  }
}

TEST(Tracking, NatIsNotAskedWhereNoRuleNeedsIt) {
  const std::vector<std::pair<std::vector<Match>, Target>> harmless{
      {{}, Verdict::accept},  {{}, Jump{"OTHER"}}, {{}, Tproxy{1, 1, 1}}, {{MarkMatch{}}, SetMark{1, ~0U}},
      {{}, NonTerminating{}}, {{}, Reject{}}};
  for (const auto& [matches, target] : harmless)
    EXPECT_EQ(outcome(Verdict::drop, matches, target).kind, Kind::leaves) << target.index();
}

TEST(Tracking, IsNotKnownWhereARuleThatIsNotUnderstoodMayNeedIt) {
  const std::vector<std::pair<std::vector<Match>, Target>> may{
      {{UnknownMatch{"-m x"}}, Verdict::drop}, {{}, UnknownTarget{"-j X"}}, {{}, NonTerminating{"-j LOG"}}};
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

TEST(Tracking, ARuleThatExemptsIsTheReasonWhyNatIsNotAsked) {
  Live live;
  live.backend = BackendKind::iptables_legacy;
  live.chains = {chain(Families::both(), Table::raw, "OUTPUT", false, {{{}, Notrack{}}}),
                 chain(Families::both(), Table::nat, "OUTPUT", false, {{{}, Redirect{1}}})};
  const Trace trace = explain(packet_of("out tcp 192.0.2.77:80"), assumed_pod(planned("")), {&live, 1});
  EXPECT_EQ(trace.outcome.kind, Kind::leaves);
  ASSERT_EQ(trace.decisive.size(), 1U);
  EXPECT_EQ(trace.steps[trace.decisive.front()].live->rule.target, Target(Notrack{}));
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

// What becomes of the replies to a query, by these rules: of a container behind docker0, or of the pod itself.
std::string replies(const char* packet, std::initializer_list<std::string_view> rules) {
  const Live live = rules_of_others(BackendKind::iptables_legacy, Family::ipv4, rules);
  const Outcome found = explain(packet_of(packet), assumed_pod(planned(""), {"docker0"}), {&live, 1}).outcome;
  constexpr const char* words[] = {"arrive", "lost", "unknown"};
  const std::string why = found.answers_why.empty() ? "" : ": " + found.answers_why;
  return words[static_cast<std::size_t>(found.answers)] + why;
}

TEST(Tracking, RepliesInAnotherZoneAreNotTranslatedBack) {
  constexpr const char* forwarded = "in udp 10.96.0.10:53 --from 198.18.2.9 --in-interface docker0";
  constexpr std::string_view zone = "raw -A PREROUTING -s 10.96.0.10 -p udp --sport 53 -j CT --zone 1";
  constexpr std::string_view masquerade = "nat -A POSTROUTING -s 198.18.2.0/24 -j MASQUERADE";
  EXPECT_EQ(replies(forwarded, {masquerade}), "arrive");
  EXPECT_EQ(replies(forwarded, {zone}), "arrive") << "nothing is translated";
  EXPECT_EQ(
      replies(forwarded, {zone, masquerade}),
      "lost: they are tracked in conntrack zone 1 (rule 1 of raw PREROUTING), the request in zone 0: they stay in "
      "the pod");
  EXPECT_EQ(replies(forwarded, {zone, "raw -A PREROUTING -i docker0 -p udp --dport 53 -j CT --zone 1", masquerade}),
            "arrive");
  EXPECT_EQ(replies(forwarded, {"raw -A PREROUTING -s 10.96.0.10 -j CT --zone 0", masquerade}), "arrive")
      << "the zone of all others";
  EXPECT_EQ(replies(forwarded, {zone, "nat -A POSTROUTING -s 10.96.0.10 -j SNAT --to-source 10.1.1.1"}),
            "lost: they are tracked in conntrack zone 1 (rule 1 of raw PREROUTING), the request in zone 0: they come "
            "from another address or port than the request went to");
  EXPECT_EQ(replies("in icmp 10.96.0.10 --from 198.18.2.9 --in-interface docker0",
                    {"raw -A PREROUTING -s 10.96.0.10 -j CT --zone 1",
                     "mangle -A FORWARD -m conntrack --ctstate "
                     "INVALID -j DROP"}),
            "lost: they are tracked in conntrack zone 1 (rule 1 of raw PREROUTING), the request in zone 0: dropped: by "
            "rule 1 of mangle FORWARD");
  // Later packets of tcp would be taken for connections of their own.
  EXPECT_EQ(replies("out tcp 10.96.0.10:80", {"raw -A OUTPUT -p tcp -j CT --zone 3"}),
            "unknown: they are tracked in conntrack zone 0, the request in zone 3 (rule 1 of raw OUTPUT)");
}

// Whoever listens where queries are redirected to is whom a rule for what comes from there names.
TEST(Tracking, AListenerIsWhomTheRuleOfItsZoneNames) {
  constexpr const char* query = "out udp 10.96.0.10:53 --uid 1000";
  constexpr std::string_view to_proxy = "nat -A OUTPUT -p udp --dport 53 -j REDIRECT --to-ports 15053";
  constexpr std::string_view zone = "raw -A OUTPUT -p udp --dport 53 -j CT --zone 2";
  constexpr std::string_view by_uid = "raw -A OUTPUT -p udp --sport 15053 -m owner --uid-owner 1337 -j CT --zone 2";
  EXPECT_EQ(replies(query, {to_proxy, zone, by_uid}), "arrive");
  EXPECT_EQ(replies(query, {to_proxy, zone}),
            "lost: they are tracked in conntrack zone 0, the request in zone 2 (rule 1 of raw OUTPUT): they come from "
            "another address or port than the request went to");
  // Of another port it says nothing, and another target may be there to keep others from it.
  EXPECT_THAT(replies(query, {to_proxy, zone, "raw -A OUTPUT -p udp -m owner --uid-owner 1337 -j CT --zone 2"}),
              ::testing::StartsWith("unknown: "));
  EXPECT_THAT(replies(query, {to_proxy, zone, by_uid,
                              "filter -A OUTPUT -p udp --sport 15053 -m owner --uid-owner 1000 -j DROP"}),
              ::testing::StartsWith("unknown: "));
}

}  // namespace
}  // namespace sidetrack
