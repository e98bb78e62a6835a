// SPDX-License-Identifier: GPL-2.0-or-later
// All combinations of what each place may hold, with what may be asked.
#include "apply/decide.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pod/ztunnel.h"
#include "unit/fake_kernel.h"
#include "unit/usual_config.h"

namespace sidetrack {
namespace {

using enum BackendKind;

// What a place may hold.
enum class Held { nothing, lacking, unreadable, others_unreadable, equal, older };
constexpr Held all_held[] = {Held::nothing,           Held::lacking, Held::unreadable,
                             Held::others_unreadable, Held::equal,   Held::older};

struct Case {
  Held legacy, iptables_nft, nftables;
  [[nodiscard]] Held of(BackendKind kind) const {
    return kind == iptables_legacy ? legacy : kind == BackendKind::iptables_nft ? iptables_nft : nftables;
  }
};

template <typename Visit>
void for_each_case(Visit visit) {
  for (Held legacy : all_held) {
    for (Held iptables_nft : all_held) {
      for (Held nftables : all_held) {
        const Case one{legacy, iptables_nft, nftables};
        SCOPED_TRACE(::testing::Message()
                     << static_cast<int>(legacy) << static_cast<int>(iptables_nft) << static_cast<int>(nftables));
        visit(one);
      }
    }
  }
}

class DecideTest : public ::testing::Test {
 protected:
  Config config = injected();
  ApplyOptions options;
  Plan wanted = plan(config, dual_stack());

  // ---- each is made once: 216 cases share them.
  std::map<std::pair<BackendKind, Held>, ReadResult<Live>> results = [this] {
    Config other = injected();
    other.proxy_port = 16001;
    const Plan older = plan(other, dual_stack());
    std::map<std::pair<BackendKind, Held>, ReadResult<Live>> made;
    for (BackendKind kind : all_backends) {
      made[{kind, Held::nothing}] = Absent{};
      made[{kind, Held::lacking}] = Absent{Error(ExitCode::kernel_lacks, "lacks").as_of_one_backend()};
      made[{kind, Held::unreadable}] = Unreadable{Error(ExitCode::not_permitted, "CAP is missing", "add CAP")};
      made[{kind, Held::others_unreadable}] = Unreadable{Error(ExitCode::not_permitted, "CAP is missing"), false};
      for (const auto& [held, what] : {std::pair(Held::equal, wanted), std::pair(Held::older, older)}) {
        FakeBackend backend;
        backend.live.backend = kind;
        backend.replace(backend.live, canonical(kind, what.ruleset));
        made[{kind, held}] = backend.live;
      }
    }
    return made;
  }();

  Survey survey(const Case& one) {
    return {{results[{iptables_legacy, one.legacy}], results[{iptables_nft, one.iptables_nft}],
             results[{nftables, one.nftables}]},
            false,
            wanted.routing,
            {}};
  }
  [[nodiscard]] Request request() const { return {.plan = &wanted, .options = &options}; }

  static bool blind(const Case& one) {
    return std::ranges::any_of(all_backends, [&](BackendKind kind) { return one.of(kind) == Held::unreadable; });
  }
  static std::vector<BackendKind> holders(const Case& one) {
    std::vector<BackendKind> found;
    for (BackendKind kind : all_backends) {
      if (one.of(kind) == Held::equal || one.of(kind) == Held::older) found.push_back(kind);
    }
    return found;
  }
  // What `auto` tries, in this order, where legacy iptables is not in use.
  static std::vector<BackendKind> tried_by_auto(const Case& one) {
    std::vector<BackendKind> order{iptables_nft, nftables, iptables_legacy};
    const std::vector<BackendKind> holding = holders(one);
    if (holding.size() == 1) {
      std::erase(order, holding.front());
      order.insert(order.begin(), holding.front());
    }
    std::erase_if(order, [&](BackendKind kind) {
      return one.of(kind) == Held::lacking || one.of(kind) == Held::others_unreadable;
    });
    return order;
  }
  static std::vector<BackendKind> removed(const Attempt& attempt) {
    std::vector<BackendKind> found;
    for (const Commit& commit : attempt.commits) {
      for (const Write& write : commit) {
        if (write.kind == Write::Kind::remove) found.push_back(write.backend);
      }
    }
    std::ranges::sort(found);
    return found;
  }
  static std::vector<BackendKind> without(std::vector<BackendKind> list, BackendKind one) {
    std::erase(list, one);
    return list;
  }
  // What holds for every attempt: nothing of ours is left elsewhere, new rules come first, nf_tables changes at once.
  static void expect_sound(const Attempt& attempt, const Case& one) {
    EXPECT_EQ(removed(attempt), attempt.backend ? without(holders(one), *attempt.backend) : holders(one));
    EXPECT_LE(attempt.commits.size(), 2U);
    for (std::size_t i = 0; i < attempt.commits.size(); ++i) {
      const bool legacy = attempt.commits[i].front().backend == iptables_legacy;
      for (std::size_t j = 0; j < attempt.commits[i].size(); ++j) {
        const Write& write = attempt.commits[i][j];
        EXPECT_EQ(write.backend == iptables_legacy, legacy);
        EXPECT_TRUE(write.kind == Write::Kind::remove || (i == 0 && j == 0 && write.backend == attempt.backend));
      }
      EXPECT_TRUE(i == 0 || (attempt.commits[0].front().backend == iptables_legacy) != legacy);
    }
  }
};

TEST_F(DecideTest, WhatIsNotSeenIsNeverTakenForEmpty) {
  for_each_case([&](const Case& one) {
    if (!blind(one)) return;
    const Survey seen = survey(one);
    for (const Request& asked : {request(), Request{}}) {
      const auto decision = decide(asked, seen);
      const auto* refusal = std::get_if<Error>(&decision);
      ASSERT_NE(refusal, nullptr);
      EXPECT_EQ(refusal->code(), ExitCode::not_permitted);
      EXPECT_THAT(refusal->what(), ::testing::HasSubstr("CAP is missing"));
      EXPECT_EQ(refusal->hint(), "add CAP");
    }
    EXPECT_THROW(static_cast<void>(compare(request(), seen)), Error);
  });
}

TEST_F(DecideTest, CleanRemovesFromWhereverOursAre) {
  for_each_case([&](const Case& one) {
    if (blind(one)) return;
    const auto decision = std::get<Decision>(decide({}, survey(one)));
    EXPECT_EQ(decision.attempts.size(), holders(one).empty() ? 0U : 1U);
    for (const Attempt& attempt : decision.attempts) expect_sound(attempt, one);
    EXPECT_EQ(decision.remove, wanted.routing);
    EXPECT_EQ(decision.add, Routing{});
  });
}

TEST_F(DecideTest, ApplyTriesEveryBackendThatMayDo) {
  for_each_case([&](const Case& one) {
    if (blind(one)) return;
    const auto decided = decide(request(), survey(one));
    const std::vector<BackendKind> able = tried_by_auto(one);
    std::vector<BackendKind> equal;
    std::ranges::copy_if(able, std::back_inserter(equal),
                         [&](BackendKind kind) { return one.of(kind) == Held::equal; });
    if (able.empty()) {
      EXPECT_EQ(std::get<Error>(decided).code(), ExitCode::kernel_lacks);
      return;
    }
    const auto& decision = std::get<Decision>(decided);
    std::vector<BackendKind> tried;
    for (const Attempt& attempt : decision.attempts) {
      expect_sound(attempt, one);
      tried.push_back(*attempt.backend);
      const bool puts = !attempt.commits.empty() && attempt.commits[0][0].kind == Write::Kind::put;
      EXPECT_EQ(puts, equal.empty());
    }
    // What is as asked stays where it is.
    EXPECT_EQ(tried, equal.empty() ? able : std::vector{equal.front()});
    EXPECT_EQ(compare(request(), survey(one)).equal(), decision.attempts.front().commits.empty());
  });
}

TEST_F(DecideTest, ForceWritesEvenWhatIsAsAsked) {
  options.force_apply = true;
  for_each_case([&](const Case& one) {
    if (blind(one) || tried_by_auto(one).empty()) return;
    const auto decision = std::get<Decision>(decide(request(), survey(one)));
    EXPECT_EQ(decision.attempts.front().commits[0][0], (Write{tried_by_auto(one).front(), Write::Kind::put}));
  });
}

// Another program that begins to use legacy iptables moves nothing: whatever holds the rules as requested keeps them,
// and rules of other options are replaced where they are. What is named is what is taken.
TEST_F(DecideTest, LegacyTablesThatComeIntoUseMoveNothing) {
  for_each_case([&](const Case& one) {
    if (blind(one) || one.of(iptables_legacy) != Held::nothing) return;
    Survey seen = survey(one);
    seen.legacy_in_use = true;
    const std::vector<BackendKind> able = tried_by_auto(one);
    const auto equal = std::ranges::find(able, Held::equal, [&](BackendKind kind) { return one.of(kind); });
    const std::vector<BackendKind> holding = holders(one);
    const auto first = [&] { return std::get<Decision>(decide(request(), seen)).attempts.front(); };
    const BackendKind kept = equal != able.end() ? *equal : holding.size() == 1 ? holding.front() : iptables_legacy;
    EXPECT_EQ(first().backend, kept);
    EXPECT_EQ(holding_backend(request(), seen), kept);
    expect_sound(first(), one);
    const PodDiff compared = compare(request(), seen);
    EXPECT_EQ(compared.backends.front().backend, kept);
    EXPECT_EQ(compared.equal(), first().commits.empty());
    EXPECT_EQ(compared.equal(), equal != able.end() && holding.size() == 1);
    for (const BackendKind named : all_backends) {
      if (std::ranges::find(able, named) == able.end()) continue;
      options.backend = named;
      EXPECT_EQ(first().backend, named);
      EXPECT_EQ(holding_backend(request(), seen), named);
      options.backend.reset();
    }
  });
}

TEST_F(DecideTest, ABackendThatIsNamedIsTheOnlyOne) {
  for (const BackendKind kind : all_backends) {
    options.backend = kind;
    for_each_case([&](const Case& one) {
      if (blind(one)) return;
      const auto decided = decide(request(), survey(one));
      if (one.of(kind) == Held::lacking || one.of(kind) == Held::others_unreadable) {
        EXPECT_NE(std::get_if<Error>(&decided), nullptr);
        return;
      }
      const auto& decision = std::get<Decision>(decided);
      ASSERT_EQ(decision.attempts.size(), 1U);
      EXPECT_EQ(decision.attempts[0].backend, kind);
      expect_sound(decision.attempts[0], one);
    });
  }
}

TEST_F(DecideTest, RoutesAreAddedAndRemovedAsOftenAsTheyDiffer) {
  const PolicyRule rule = fwmark_rule(Family::ipv4, 1337, 133);
  wanted.routing = {{rule}, {}, {}};
  Survey seen = survey({Held::nothing, Held::nothing, Held::nothing});
  seen.routing = {{rule, rule}, {}, {}};
  const auto decision = std::get<Decision>(decide(request(), seen));
  EXPECT_EQ(decision.add, Routing{});
  EXPECT_EQ(decision.remove, (Routing{{rule}, {}, {}}));
}

TEST_F(DecideTest, WhatAnAgentMadeIsTakenOverWithTheFirstChange) {
  const PolicyRule rule = fwmark_rule(Family::ipv4, ztunnel_connection_mark, ztunnel_route_table, ztunnel_mask);
  const Route route = local_default(Family::ipv4, ztunnel_route_table);
  Routing of_agent{{rule}, {route}, {}};
  wanted.routing = of_agent;
  of_agent.policy_rules[0].origin = of_agent.local_routes[0].origin = RoutingOrigin::agent;
  for (const Held held : {Held::equal, Held::older}) {
    Survey seen = survey({Held::nothing, Held::nothing, held});
    seen.routing = of_agent;
    const auto decision = std::get<Decision>(decide(request(), seen));
    const bool changes = held == Held::older;
    EXPECT_EQ(decision.add, changes ? wanted.routing : Routing{});
    EXPECT_EQ(decision.remove, changes ? of_agent : Routing{});
    const PodDiff compared = compare(request(), seen);
    EXPECT_EQ(compared.missing, Routing{});
    EXPECT_EQ(compared.extra, Routing{});
    // More than it made.
    seen.routing.local_routes.clear();
    EXPECT_EQ(std::get<Decision>(decide(request(), seen)).add, wanted.routing);
  }
}

std::string refusal(const std::variant<Decision, Error>& decided) {
  const auto* error = std::get_if<Error>(&decided);
  return error != nullptr ? error->what() + ("; " + error->hint()) : "";
}

// An agent's rules for an ambient pod and a sidecar's do not go together; to remove what is ours does not ask them.
TEST_F(DecideTest, RulesOfAnAmbientPodAreNotJoinedByASidecars) {
  Survey seen = survey({Held::nothing, Held::nothing, Held::older});
  seen.of_agents = {nftables, iptables_nft};
  EXPECT_EQ(refusal(decide(request(), seen)),
            "nftables: this is an ambient pod: an agent of the node, Istio's or Cilium's, made rules that lead to its "
            "ztunnel; nothing was changed; take the pod out of the ambient mesh; or remove them: 'sidetrack clean "
            "--dataplane ambient'; or program such rules here: --dataplane ambient");
  EXPECT_EQ(refusal(decide({}, seen)), "");
  EXPECT_EQ(refusal(decide(request(), survey({Held::nothing, Held::nothing, Held::older}))), "");
  const Plan none;
  EXPECT_EQ(refusal(decide({.plan = &none, .options = &options}, seen)), "");
  seen.of(nftables) = results[{nftables, Held::equal}];
  EXPECT_EQ(refusal(decide(request(), seen)), "") << "there is nothing to change";
}

TEST_F(DecideTest, OfBackendsThatCannotBeLeftOthersAreTried) {
  Survey seen = survey({Held::nothing, Held::older, Held::nothing});
  EXPECT_FALSE(kept_by_others(seen));
  auto& live = std::get<Live>(seen.of(iptables_nft));
  LiveChain mine{Family::ipv4, Table::nat, "mine", false, {}};
  mine.table_name = "nat";
  mine.rules.push_back({{Family::ipv4, Table::nat, "mine", {}, Jump{"ISTIO_OUTPUT"}, {}, {}}, {}, false});
  live.chains.push_back(mine);
  // To write the rules where that one leads is possible, to move them is not.
  const auto decision = std::get<Decision>(decide(request(), seen));
  ASSERT_EQ(decision.attempts.size(), 1U);
  EXPECT_EQ(decision.attempts.front().backend, BackendKind::iptables_nft);
  options.backend = iptables_legacy;
  const std::string said = refusal(decide(request(), seen));
  EXPECT_EQ(said,
            "iptables-nft: the chain ISTIO_OUTPUT of the table nat (ipv4) cannot be removed: another program's rule "
            "leads to it: -A mine -j ISTIO_OUTPUT; delete that rule first; nothing was changed");
  EXPECT_EQ(refusal(decide({}, seen)), said);
  EXPECT_TRUE(kept_by_others(seen));
  seen.of(iptables_legacy) = results[{iptables_legacy, Held::unreadable}];
  EXPECT_FALSE(kept_by_others(seen)) << "that is not known";
  EXPECT_EQ(std::string(compare(request(), survey({Held::older, Held::nothing, Held::nothing})).refusal), "");
}

TEST_F(DecideTest, AnotherProgramsChainInOurTableKeepsIt) {
  Survey seen = survey({Held::nothing, Held::nothing, Held::older});
  auto& live = std::get<Live>(seen.of(nftables));
  for (LiveChain& chain : live.chains) chain.table_name = "inet sidetrack";
  live.own_tables = {"inet sidetrack"};
  for (LiveChain& chain : live.chains) chain.ours = true;
  EXPECT_EQ(refusal(decide(request(), seen)), "");
  live.chains.push_back({Families::both(), Table::nat, "mine", false, {}});
  live.chains.back().table_name = "inet sidetrack";
  const std::string said =
      "nftables: the table inet sidetrack holds the chain mine that Sidetrack did not make; nothing was changed; move "
      "it to a table of its own, then remove it here: nft delete chain inet sidetrack mine";
  for (const BackendKind kind : all_backends) {
    options.backend = kind;
    EXPECT_EQ(refusal(decide(request(), seen)), said) << name(kind);
  }
  EXPECT_EQ(refusal(decide({}, seen)), said);
  EXPECT_EQ(compare(request(), seen).refusal + "; ", said.substr(0, said.find("move")));
}

TEST_F(DecideTest, WhyNoBackendWillDoIsSaidOfEach) {
  const Error lacks = Error(ExitCode::kernel_lacks, "lacks x", "load x");
  EXPECT_STREQ(none_left({{nftables, lacks}}).what(), "lacks x");
  const Error both = none_left({{nftables, lacks}, {iptables_nft, Error(ExitCode::failed, "iptables-nft: no")}});
  EXPECT_EQ(both.code(), ExitCode::kernel_lacks);
  EXPECT_STREQ(both.what(), "no usable backend:\n  nftables: lacks x; load x\n  iptables-nft: no");
  EXPECT_EQ(skipped_words(Skipped{iptables_nft, lacks}), "iptables-nft: lacks x");
  EXPECT_EQ(skipped_words(Skipped{nftables, Error(ExitCode::failed, "nftables: no")}), "nftables: no");
}

TEST_F(DecideTest, WhatIsNotUsedIsSaidUnlessTheRulesAreThere) {
  const auto skipped = [&](const Case& one) {
    std::vector<std::string> all;
    const auto decision = std::get<Decision>(decide(request(), survey(one)));
    for (const Skipped& each : decision.skipped) all.push_back(skipped_words(each));
    return all;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(skipped({Held::others_unreadable, Held::lacking, Held::nothing}),
              ElementsAre("iptables-nft: lacks", "iptables-legacy: CAP is missing"));
  EXPECT_THAT(skipped({Held::lacking, Held::nothing, Held::equal}), ElementsAre());
}

// Rules and routes of others that are as asked need not be added, and are not removed.
TEST_F(DecideTest, RoutesOfOthersDoAsWell) {
  const PolicyRule rule = fwmark_rule(Family::ipv4, 1337, 133);
  const PolicyRule old = fwmark_rule(Family::ipv4, 7, 133);
  wanted.routing = {{rule}, {}, {}};
  Survey seen = survey({Held::nothing, Held::nothing, Held::equal});
  seen.routing = {{old}, {}, {}};
  seen.others_routing = {{rule}, {}, {}};
  auto decision = std::get<Decision>(decide(request(), seen));
  EXPECT_EQ(decision.add, Routing{});
  EXPECT_EQ(decision.remove, (Routing{{old}, {}, {}}));
  PodDiff compared = compare(request(), seen);
  EXPECT_EQ(compared.missing, Routing{});
  EXPECT_EQ(compared.extra, (Routing{{old}, {}, {}}));
  seen.others_routing = {};
  EXPECT_EQ(std::get<Decision>(decide(request(), seen)).add, wanted.routing);
  EXPECT_EQ(compare(request(), seen).missing, wanted.routing);
  // Without rules, all of ours goes.
  const Plan none;
  decision = std::get<Decision>(decide({.plan = &none, .options = &options}, seen));
  EXPECT_EQ(decision.remove, (Routing{{old}, {}, {}}));
  EXPECT_EQ(decision.attempts.size(), 1U);
  EXPECT_EQ(decision.attempts.front().backend, std::nullopt);
}

// What differs is looked for where the rules are, or else where they would go.
TEST_F(DecideTest, ComparedIsTheBackendThatHoldsTheRules) {
  const auto compared = [&](const Case& one) {
    std::string all;
    for (const Difference& each : compare(request(), survey(one)).backends)
      all += fmt::format("{}{} ", name(each.backend), each.empty() ? " equal" : "");
    return all;
  };
  EXPECT_EQ(compared({Held::nothing, Held::nothing, Held::nothing}), "iptables-nft ");
  EXPECT_EQ(compared({Held::nothing, Held::nothing, Held::older}), "nftables ");
  EXPECT_EQ(compared({Held::older, Held::nothing, Held::nothing}), "iptables-legacy ");
  EXPECT_EQ(compared({Held::older, Held::nothing, Held::older}), "iptables-nft iptables-legacy nftables ");
  EXPECT_EQ(compared({Held::older, Held::nothing, Held::equal}), "nftables equal iptables-legacy ");
  options.backend = nftables;
  EXPECT_EQ(compared({Held::older, Held::nothing, Held::nothing}), "nftables iptables-legacy ");
  EXPECT_EQ(compared({Held::equal, Held::nothing, Held::nothing}), "nftables iptables-legacy ");
}

// Tables that are not seen may keep traffic from the proxy, as far as they have chains that the kernel calls.
TEST_F(DecideTest, OfTablesThatAreNotSeenItIsNotKnownWhetherTheyLetTrafficPass) {
  Survey seen = survey({Held::others_unreadable, Held::nothing, Held::equal});
  EXPECT_TRUE(compare(request(), seen).as_requested());
  std::get<Unreadable>(seen.of(iptables_legacy)).chains.resize(1);
  try {
    static_cast<void>(compare(request(), seen));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::not_permitted);
    EXPECT_STREQ(error.what(), "CAP is missing: whether its tables keep traffic from the proxy is not known");
  }
  const Plan none;
  EXPECT_FALSE(compare({.plan = &none, .options = &options}, seen).equal());
}

TEST_F(DecideTest, OnlyWhatOthersHoldIsAnObstacle) {
  Survey seen = survey({Held::nothing, Held::nothing, Held::nothing});
  auto& legacy = seen.of(iptables_legacy).emplace<Live>();
  LiveChain& output = legacy.chains.emplace_back();
  output.families = Family::ipv4;
  output.table = Table::filter;
  output.name = "OUTPUT";
  output.hook = builtin_hook(Table::filter, "OUTPUT");
  output.policy = Verdict::drop;
  EXPECT_TRUE(obstacles(wanted, nftables, seen).empty()) << "without a pod there is nobody to ask";
  seen.pod = assumed_pod(wanted);
  EXPECT_FALSE(obstacles(wanted, nftables, seen).empty());
  output.policy = Verdict::accept;
  EXPECT_TRUE(obstacles(wanted, nftables, seen).empty());
}

TEST_F(DecideTest, ADormantTableIsNotAsAsked) {
  Survey seen = survey({Held::nothing, Held::nothing, Held::equal});
  for (LiveChain& chain : std::get<Live>(seen.of(nftables)).chains) chain.dormant = true;
  options.backend = BackendKind::nftables;
  const auto decision = std::get<Decision>(decide(request(), seen));
  EXPECT_EQ(decision.attempts[0].commits, (std::vector<Commit>{{{nftables, Write::Kind::put}}}));
}

}  // namespace
}  // namespace sidetrack
