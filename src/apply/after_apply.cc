// SPDX-License-Identifier: GPL-2.0-or-later
#include "apply/after_apply.h"

#include <algorithm>

#include "mesh/istio_rules.h"
#include "rule/ours.h"
#include "rule/splice.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

// Without what is ours.
void drop_ours(Live& live) {
  std::erase_if(live.chains, [](const LiveChain& chain) { return is_wholly_ours(chain); });
  for (LiveChain& chain : live.chains) std::erase_if(chain.rules, &LiveRule::ours);
}

// Others' rules of a chain where they stand, and the wanted ones in the place of ours.
std::vector<LiveRule> spliced(const std::vector<LiveRule>& there, const std::vector<LiveRule>& wanted) {
  std::vector<Rule> placed;
  for (const LiveRule& one : wanted) {
    placed.push_back(one.rule);
    if (came_by_insert(one.rule)) placed.back().insert_at = 1;
  }
  std::vector<const Rule*> rules;
  std::ranges::transform(placed, std::back_inserter(rules), [](const Rule& rule) { return &rule; });
  std::vector<LiveRule> result;
  for (const Slot& slot : splice(there, rules, came_by_insert)) {
    result.push_back(slot.kept ? there[*slot.kept] : LiveRule{*slot.fresh, {}, true, 0});
    result.back().rule.insert_at.reset();
  }
  return result;
}

// As the backends of iptables write it.
void put_ours(Live& live, const Ruleset& canonical) {
  Live wanted = as_live(canonical, live.backend);
  std::vector<LiveChain> added;
  for (LiveChain& chain : wanted.chains) {
    const auto there = std::ranges::find_if(live.chains, [&](const LiveChain& one) {
      return one.families == chain.families && one.table == chain.table && one.name == chain.name;
    });
    if (there == live.chains.end()) {
      if (traits(live.backend).of_nf_tables) {
        chain.table_name = (chain.families == Families(Family::ipv4) ? "ip " : "ip6 ") + chain.table_name;
      }
      added.push_back(std::move(chain));
    } else {
      there->rules = spliced(there->rules, chain.rules);
      there->ours = chain.ours;
    }
  }
  for (LiveChain& there : live.chains) {
    const bool asked = std::ranges::any_of(wanted.chains, [&](const LiveChain& one) {
      return one.families == there.families && one.table == there.table && one.name == there.name;
    });
    if (!asked) std::erase_if(there.rules, &LiveRule::ours);
  }
  std::ranges::move(added, std::back_inserter(live.chains));
}

}  // namespace

std::vector<Live> after_apply(const Ruleset& canonical, BackendKind backend, bool there, std::vector<Live> after) {
  bool put = there;
  for (Live& one : after) {
    if (there && one.backend == backend) continue;
    if (one.backend == backend && !traits(backend).in_own_table) {
      put_ours(one, canonical);
      put = true;
    } else {
      drop_ours(one);
    }
  }
  if (!put) {  // in the order of a survey
    const auto next = std::ranges::find_if(after, [&](const Live& one) { return one.backend > backend; });
    after.insert(next, as_live(canonical, backend));
  }
  return after;
}

}  // namespace sidetrack
