// SPDX-License-Identifier: GPL-2.0-or-later
#include "state/host_probes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evaluate/explain.h"
#include "mesh/catalogue.h"
#include "state/decide.h"

namespace sidetrack {
namespace {

using enum BackendKind;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Address address(const char* text) { return *Address::parse(text); }

const HostProbes usual{address("169.254.7.127"), address("fd16::1"), Families::both(), {}};

Survey survey_of_nothing() {
  Survey survey;
  for (const BackendKind kind : {iptables_nft, nftables}) {
    Live live;
    live.backend = kind;
    live.rules_of = RulesOf::host_probes;
    survey.of(kind) = live;
  }
  return survey;
}

// The node as it is once that is applied.
Survey applied(std::vector<Address> pods, BackendKind kind) {
  Survey survey = survey_of_nothing();
  HostProbes asked = usual;
  asked.pods = std::move(pods);
  const Plan plan = host_probes_plan(asked, kind);
  survey.routing = plan.routing;
  Live live;
  live.backend = kind;
  live.rules_of = RulesOf::host_probes;
  for (const Chain& chain : chains(plan.ruleset, Table::nat, Families::both())) {
    LiveChain& made = live.chains.emplace_back();
    made.families = Families::both();
    made.table = Table::nat;
    made.name = chain.name;
    made.ours = !is_builtin(chain.name);
    for (const Rule* rule : chain.rules) made.rules.push_back({*rule, {}, true, 0, 0});
  }
  survey.of(kind) = live;
  return survey;
}

BackendKind chosen(const Survey& survey, const ApplyOptions& options = {}) {
  return *host_probes(usual, {}, {}, options, survey).options.backend;
}

TEST(HostProbes, GoToTheBackendThatHasThem) {
  Survey survey = survey_of_nothing();
  EXPECT_EQ(chosen(survey), iptables_nft);
  survey.legacy_in_use = true;
  EXPECT_EQ(chosen(survey), iptables_legacy);
  survey.no_sets = Error(ExitCode::kernel_lacks, "the kernel has no ip_set");
  EXPECT_EQ(chosen(survey), nftables);
  ApplyOptions options;
  options.backend = iptables_nft;
  EXPECT_EQ(chosen(survey, options), iptables_nft);
  for (const BackendKind kind : all_backends) EXPECT_EQ(chosen(applied({address("10.0.0.1")}, kind)), kind);
  survey = survey_of_nothing();
  survey.of(iptables_nft) = Absent{};
  EXPECT_EQ(chosen(survey), iptables_legacy);
  // What others hold there is no reason to go there.
  survey = survey_of_nothing();
  LiveChain& chain = std::get<Live>(survey.of(nftables)).chains.emplace_back();
  chain.rules.emplace_back();
  EXPECT_EQ(chosen(survey), iptables_nft);
}

TEST(HostProbes, AreOfTheFamiliesThatAreAsked) {
  for (const BackendKind kind : all_backends) {
    HostProbes asked = usual;
    asked.families = Family::ipv4;
    const Asked made = host_probes(asked, {address("fd00::2"), address("10.0.0.2")}, {}, {},
                                   applied({address("10.0.0.1"), address("fd00::1")}, kind));
    asked.pods = {address("10.0.0.1"), address("10.0.0.2")};
    const Plan plan = host_probes_plan(asked, kind);
    EXPECT_EQ(made.plan.ruleset.rules, plan.ruleset.rules) << name(kind);
    EXPECT_EQ(made.plan.routing, plan.routing) << name(kind);
  }
}

// A set that has our name and is another one: whoever made it, our rules would ask it.
TEST(HostProbes, ASetOfOthersWithOurNameIsInTheWayOfRulesThatAskSets) {
  const auto refusal = [](Survey survey, BackendKind kind) -> std::string {
    survey.other_set = Error(ExitCode::failed, "the set is of another type");
    ApplyOptions options;
    options.backend = kind;
    try {
      static_cast<void>(host_probes(usual, {}, {}, options, survey));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string said = "the set is of another type";
  EXPECT_EQ(refusal(survey_of_nothing(), iptables_legacy), said);
  EXPECT_EQ(refusal(survey_of_nothing(), iptables_nft), said);
  EXPECT_EQ(refusal(survey_of_nothing(), nftables), "") << "which has sets of its own";
  Survey of_iptables = applied({address("10.0.0.1")}, iptables_nft);
  EXPECT_EQ(refusal(of_iptables, nftables), said) << "rules of ours ask it still";
  for (LiveChain& chain : std::get<Live>(of_iptables.of(iptables_nft)).chains) {
    for (LiveRule& rule : chain.rules) rule.ours = false;
  }
  EXPECT_EQ(refusal(of_iptables, nftables), "") << "rules of others";
}

TEST(HostProbes, AreThoseThatAreThereWithWhatIsAddedAndWithoutWhatIsRemoved) {
  for (const BackendKind kind : all_backends) {
    const Survey survey = applied({address("10.0.0.1"), address("10.0.0.2"), address("fd00::1")}, kind);
    EXPECT_THAT(pods_in_ambient_mode(survey),
                ElementsAre(address("10.0.0.1"), address("10.0.0.2"), address("fd00::1")));
    const Asked asked = host_probes(usual, {address("10.0.0.3"), address("10.0.0.2")},
                                    {address("10.0.0.1"), address("10.0.0.9")}, {}, survey);
    HostProbes expected = usual;
    expected.pods = {address("10.0.0.2"), address("10.0.0.3"), address("fd00::1")};
    const Plan plan = host_probes_plan(expected, kind);
    EXPECT_EQ(asked.plan.ruleset.rules, plan.ruleset.rules);
    EXPECT_EQ(asked.plan.routing, plan.routing);
  }
}

TEST(HostProbes, NeighboursOfASetOfNfTablesAreAddressesEach) {
  Survey survey = applied({address("10.0.0.1")}, nftables);
  auto& live = std::get<Live>(survey.of(nftables));
  std::get<AddressMatch>(live.chains.back().rules.back().rule.matches.back()).ranges = {
      {address("10.0.0.254"), address("10.0.1.1")}};
  EXPECT_THAT(pods_in_ambient_mode(survey),
              ElementsAre(address("10.0.0.254"), address("10.0.0.255"), address("10.0.1.0"), address("10.0.1.1")));
}

// A rule of another program in the same table is no pod's, whatever it looks like; nor is one of ours that is another.
TEST(HostProbes, AreOfOurRulesAlone) {
  Survey survey = applied({address("10.0.0.1")}, nftables);
  auto& rules = std::get<Live>(survey.of(nftables)).chains.back().rules;
  LiveRule another = rules.back();
  std::get<AddressMatch>(another.rule.matches.back()).ranges = {AddressRange::single(address("10.0.0.7"))};
  another.ours = false;
  rules.push_back(another);
  another.ours = true;
  another.rule.target = Verdict::accept;
  rules.push_back(another);
  EXPECT_THAT(pods_in_ambient_mode(survey), ElementsAre(address("10.0.0.1")));
}

TEST(HostProbes, DoNotReadASetWithoutEnd) {
  Survey survey = applied({address("10.0.0.1")}, nftables);
  auto& live = std::get<Live>(survey.of(nftables));
  std::get<AddressMatch>(live.chains.back().rules.back().rule.matches.back()).ranges = {
      {address("10.0.0.0"), address("10.255.255.255")}};
  try {
    static_cast<void>(pods_in_ambient_mode(survey));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failed);
    EXPECT_STREQ(error.what(), "the set of pods' addresses of IPv4 holds more than 65536");
    EXPECT_EQ(error.hint(), "see 'nft list table inet sidetrack-host'; 'sidetrack host-probes clean' removes it");
  }
  auto& ranges = std::get<AddressMatch>(live.chains.back().rules.back().rule.matches.back()).ranges;
  ranges = {{address("10.0.0.0"), address("10.0.255.255")}};
  EXPECT_EQ(pods_in_ambient_mode(survey).size(), 65536U);
  ranges = {{address("10.0.0.0"), address("10.0.255.254")}, {address("10.1.0.0"), address("10.1.0.1")}};
  EXPECT_THROW(static_cast<void>(pods_in_ambient_mode(survey)), Error);
}

std::vector<Address> addresses(std::size_t count, const char* first) {
  std::vector<Address> all;
  for (Address each = address(first); all.size() < count; increment(std::span(each.bytes).first(each.size())))
    all.push_back(each);
  return all;
}

TEST(HostProbes, AreNoMoreThanApplyReadsAgain) {
  for (const BackendKind kind : all_backends) {
    ApplyOptions options;
    options.backend = kind;
    const auto asked = [&](const std::vector<Address>& add, const Survey& survey) {
      return host_probes(usual, add, {}, options, survey).plan;
    };
    const std::vector<Address> most = addresses(65536, "10.0.0.0");
    const Plan plan = asked(most, applied({address("10.0.0.1"), address("fd00::1")}, kind));
    const std::size_t sets = plan.routing.set_entries.size();
    EXPECT_EQ(sets, kind == nftables ? 0U : 65537U);
    try {
      static_cast<void>(asked(most, applied({address("10.9.0.1")}, kind)));
      FAIL() << name(kind);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_THAT(error.what(), ::testing::AllOf(::testing::HasSubstr("65537 addresses of IPv4"),
                                                 ::testing::HasSubstr("at most 65536")));
    }
  }
}

// ---- What decides before them.

// Another program's rule before the jump, or a chain of nf_tables that is asked before.
Survey with_masquerade(BackendKind kind, bool in_chain_before) {
  HostProbes asked = usual;
  asked.pods = {address("10.0.0.1")};
  const Plan plan = host_probes_plan(asked, kind);
  Survey survey = survey_of_nothing();
  survey.of(kind) = as_live(plan.ruleset, kind);
  survey.routing = plan.routing;
  survey.pod = assumed_pod({});
  LiveRule others;
  others.rule.families = Family::ipv4;
  others.rule.chain = "POSTROUTING";
  others.rule.target = Nat{End::source, {}, {}, "MASQUERADE"};
  auto& chains = std::get<Live>(survey.of(kind)).chains;
  const auto postrouting = std::ranges::find(chains, "POSTROUTING", &LiveChain::name);
  if (!in_chain_before) {
    postrouting->rules.insert(postrouting->rules.begin(), others);
    return survey;
  }
  LiveChain& before = std::get<Live>(survey.of(nftables)).chains.emplace_back();
  before.families = Families::both();
  before.name = "before";
  before.table_name = "inet other";
  before.hook = HookPoint{Hook::postrouting, 50, ChainType::nat, {}};
  before.rules = {others};
  return survey;
}

TEST(HostProbes, PutTheirJumpBeforeARuleThatDecidesFirst) {
  const Survey survey = with_masquerade(iptables_nft, false);
  const Asked asked = host_probes(usual, {}, {}, {}, survey);
  EXPECT_TRUE(asked.options.force_apply);
  const Request request{.plan = &asked.plan, .options = &asked.options};
  EXPECT_FALSE(std::get<Decision>(decide(request, survey)).attempts.front().commits.empty());
  const Comparison comparison = compare(request, survey);
  EXPECT_TRUE(comparison.equal());
  ASSERT_EQ(comparison.obstacles.size(), 1U);
  EXPECT_THAT(text(comparison.obstacles.front()), ::testing::HasSubstr("MASQUERADE"));
  EXPECT_THAT(obstacles(asked.plan, iptables_nft, survey, EqualRules::rewrite).obstacles, IsEmpty());
}

TEST(HostProbes, StayWhereTheyAreWhenThatWouldNotHelp) {
  for (const BackendKind kind : {iptables_nft, nftables}) {
    const Survey survey = with_masquerade(kind, true);
    const Asked asked = host_probes(usual, {}, {}, {}, survey);
    EXPECT_FALSE(asked.options.force_apply);
    const Request request{.plan = &asked.plan, .options = &asked.options};
    EXPECT_TRUE(std::get<Decision>(decide(request, survey)).attempts.front().commits.empty());
    EXPECT_EQ(compare(request, survey).obstacles.size(), 1U);
  }
}

// ---- What a set that has to go is kept by.

TEST(HostProbes, ASetThatARuleOfOthersAsksCannotGo) {
  Survey survey = applied({address("10.0.0.1")}, iptables_nft);
  survey.set_references = {{probe_set(Family::ipv4), 1}, {probe_set(Family::ipv6), 1}};
  EXPECT_EQ(set_in_use({}, survey), std::nullopt);
  survey.set_references[probe_set(Family::ipv6)] = 2;
  ASSERT_NE(set_in_use({}, survey), std::nullopt);
  EXPECT_THAT(set_in_use({}, survey)->what(), ::testing::HasSubstr(probe_set(Family::ipv6)));
  auto& live = std::get<Live>(survey.of(iptables_nft));
  LiveChain& input = live.chains.emplace_back();
  input.name = "INPUT";
  input.table = Table::filter;
  input.families = Family::ipv6;
  Rule rule;
  rule.chain = "INPUT";
  rule.matches = {SetMatch{End::source, probe_set(Family::ipv6), unknown_set, {}, false}};
  rule.target = Verdict::drop;
  input.rules.push_back({rule, {}, false, 0, 0});
  EXPECT_THAT(set_in_use({}, survey)->what(), ::testing::HasSubstr("-A INPUT"));
  const Asked kept = host_probes(usual, {}, {}, {}, survey);
  const Request request{.plan = &kept.plan, .options = &kept.options};
  EXPECT_EQ(set_in_use(request, survey), std::nullopt);
}

}  // namespace
}  // namespace sidetrack
