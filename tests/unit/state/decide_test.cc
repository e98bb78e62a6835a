// SPDX-License-Identifier: GPL-2.0-or-later
// All combinations of what each place may hold, with what may be asked.
#include "state/decide.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  std::map<std::pair<BackendKind, Held>, Sight<Live>> sights = [this] {
    Config other = injected();
    other.proxy_port = 16001;
    const Plan older = plan(other, dual_stack());
    std::map<std::pair<BackendKind, Held>, Sight<Live>> made;
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
    return {{sights[{iptables_legacy, one.legacy}], sights[{iptables_nft, one.iptables_nft}],
             sights[{nftables, one.nftables}]},
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
  const std::vector<BackendKind> order{iptables_nft, nftables, iptables_legacy};
  for_each_case([&](const Case& one) {
    if (blind(one)) return;
    const auto decided = decide(request(), survey(one));
    std::vector<BackendKind> able;
    std::vector<BackendKind> equal;
    for (BackendKind kind : order) {
      if (one.of(kind) == Held::lacking || one.of(kind) == Held::others_unreadable) continue;
      able.push_back(kind);
      if (one.of(kind) == Held::equal) equal.push_back(kind);
    }
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
    if (blind(one) || one.iptables_nft == Held::lacking || one.iptables_nft == Held::others_unreadable) return;
    const auto decision = std::get<Decision>(decide(request(), survey(one)));
    EXPECT_EQ(decision.attempts.front().commits[0][0], (Write{iptables_nft, Write::Kind::put}));
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
  const PolicyRule rule{Family::ipv4, 1337, 133};
  wanted.routing = {{rule}, {}, {}};
  Survey seen = survey({Held::nothing, Held::nothing, Held::nothing});
  seen.routing = {{rule, rule}, {}, {}};
  const auto decision = std::get<Decision>(decide(request(), seen));
  EXPECT_EQ(decision.add, Routing{});
  EXPECT_EQ(decision.remove, (Routing{{rule}, {}, {}}));
}

TEST_F(DecideTest, WhatAnAgentMadeIsTakenOverWithTheFirstChange) {
  const PolicyRule rule{Family::ipv4, ztunnel_connection_mark, ztunnel_route_table, {}, ztunnel_mask};
  const LocalRoute route{Family::ipv4, ztunnel_route_table};
  Routing of_agent{{rule}, {route}, {}};
  wanted.routing = of_agent;
  of_agent.policy_rules[0].by_agent = of_agent.local_routes[0].by_agent = true;
  for (const Held held : {Held::equal, Held::older}) {
    Survey seen = survey({Held::nothing, Held::nothing, held});
    seen.routing = of_agent;
    const auto decision = std::get<Decision>(decide(request(), seen));
    const bool changes = held == Held::older;
    EXPECT_EQ(decision.add, changes ? wanted.routing : Routing{});
    EXPECT_EQ(decision.remove, changes ? of_agent : Routing{});
    const Comparison compared = compare(request(), seen);
    EXPECT_EQ(compared.missing, Routing{});
    EXPECT_EQ(compared.extra, Routing{});
    // More than it made.
    seen.routing.local_routes.clear();
    EXPECT_EQ(std::get<Decision>(decide(request(), seen)).add, wanted.routing);
  }
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
