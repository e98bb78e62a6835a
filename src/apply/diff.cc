// SPDX-License-Identifier: GPL-2.0-or-later
#include "apply/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "apply/common_subsequence.h"
#include "model/printable.h"
#include "rule/iptables.h"
#include "rule/ours.h"

namespace sidetrack {
namespace {

// A chain on both sides. Pointers are into the Live and the Ruleset that are compared.
struct Pair {
  Families scope;
  const LiveChain* live = nullptr;
  bool is_asked = false;
  std::vector<const Rule*> asked{};
};

struct Key {
  Table table;
  bool ipv6;
  std::string name;
  friend auto operator<=>(const Key&, const Key&) = default;
};

Key key_of(Table table, Families scope, const std::string& name) {
  return {table, scope == Families(Family::ipv6), name};
}

// Calls `visit(key, pair)` for each chain that is on either side.
template <typename Visit>
void for_each_pair(const Live& live, const Ruleset& asked, Visit visit) {
  std::map<Key, Pair> pairs;
  for (Families scope : scopes(live.backend)) {
    for (Table table : all_tables) {
      for (Chain& chain : chains(asked, table, scope))
        pairs[key_of(table, scope, chain.name)] = {scope, nullptr, true, std::move(chain.rules)};
    }
  }
  for (const LiveChain& chain : live.chains) {
    const Key key = key_of(chain.table, chain.families, chain.name);
    if (!concerns_us(chain) && !pairs.contains(key)) continue;
    pairs[key].scope = chain.families;
    pairs[key].live = &chain;
  }
  for (const auto& [key, pair] : pairs) visit(key, pair);
}

std::vector<const Rule*> our_rules(const LiveChain* chain) {
  std::vector<const Rule*> rules;
  if (chain == nullptr) return rules;
  for (const LiveRule& live : chain->rules) {
    if (live.ours) rules.push_back(&live.rule);
  }
  return rules;
}

// A rule for both families stands once in each family's table.
bool same_in(Families scope, const Rule& asked, const Rule& live) {
  return (asked.families & scope) == (live.families & scope) && same_effect(asked, live);
}

// A built-in chain that is not there is no difference: it may be created with its first rule.
bool chain_missing(const Key& key, const Pair& pair) { return pair.live == nullptr && !is_builtin(key.name); }
bool chain_extra(const Pair& pair) { return !pair.is_asked && is_wholly_ours(*pair.live); }

// Rules that are there, and that the kernel does not ask as they are asked for.
bool is_dormant(const Pair& pair) { return pair.live != nullptr && pair.live->dormant && concerns_us(*pair.live); }
bool drops(const Pair& pair) {
  return pair.live != nullptr && pair.live->ours && pair.scope == Families::both() &&
         pair.live->policy != Verdict::accept;
}

bool equal_pair(const Key& key, const Pair& pair) {
  if (chain_missing(key, pair) || chain_extra(pair) || is_dormant(pair) || drops(pair)) return false;
  return std::ranges::equal(pair.asked, our_rules(pair.live),
                            [&](const Rule* a, const Rule* b) { return same_in(pair.scope, *a, *b); });
}

// Both sides in one sequence; others' rules of a built-in chain where they stand among ours.
std::vector<DiffLine> lines(const Pair& pair) {
  const std::vector<const Rule*> live = our_rules(pair.live);
  const std::vector<const Rule*>& asked = pair.asked;
  auto common = common_subsequence(live.size(), asked.size(), [&](std::size_t before, std::size_t after) {
    return same_in(pair.scope, *asked[after], *live[before]) || same_in(pair.scope, *live[before], *asked[after]);
  });
  common.emplace_back(live.size(), asked.size());

  std::vector<DiffLine> result;
  auto place = pair.live != nullptr ? pair.live->rules.begin() : std::vector<LiveRule>::const_iterator{};
  const auto others_until = [&](const Rule* ours) {
    if (pair.live == nullptr) return;
    for (; place != pair.live->rules.end() && &place->rule != ours; ++place) {
      if (!place->ours) result.push_back({DiffLine::Kind::foreign, place->rule});
    }
  };
  std::size_t before = 0, after = 0;
  const auto put_live = [&](DiffLine::Kind kind) {
    others_until(live[before]);
    result.push_back({kind, *live[before++]});
  };
  for (const auto& [same_before, same_after] : common) {
    while (before < same_before) put_live(DiffLine::Kind::extra);
    for (; after < same_after; ++after) result.push_back({DiffLine::Kind::missing, *asked[after]});
    if (before < live.size()) put_live(DiffLine::Kind::same), ++after;
  }
  others_until(nullptr);
  return result;
}

bool decides(const Rule& rule) { return !goes_on(rule.target) && rule.target != Target(Verdict::return_); }

// Others' rules before the first of ours in a built-in chain.
void warn_of_earlier(const Live& live, std::vector<std::string>& warnings) {
  for (const LiveChain& chain : live.chains) {
    if (chain.ours) continue;
    const auto first = std::ranges::find_if(chain.rules, &LiveRule::ours);
    if (first == chain.rules.end()) continue;
    for (auto it = chain.rules.begin(); it != first; ++it) {
      if (!decides(it->rule)) continue;
      warnings.push_back(
          "in " + std::string(name(chain.table)) +
          ", another program's rule stands before ours and may decide first: " + iptables_words(it->rule));
    }
  }
}

// What is in `a` more often than in `b`.
template <typename T>
std::vector<T> without(const std::vector<T>& a, std::vector<T> b) {
  std::vector<T> rest;
  for (const T& x : a) {
    const auto same = std::ranges::find(b, x);
    if (same != b.end()) {
      b.erase(same);
    } else {
      rest.push_back(x);
    }
  }
  return rest;
}

// A table of our own that nothing is asked of: it goes, empty as it may be. Those of iptables stay.
bool is_left_over(const Live& live, const Ruleset& asked) {
  return traits(live.backend).in_own_table && asked.rules.empty() && !live.own_tables.empty();
}

}  // namespace

Difference diff(const Live& live, const Ruleset& asked) {
  Difference difference;
  difference.backend = live.backend;
  for_each_pair(live, asked, [&](const Key& key, const Pair& pair) {
    if (equal_pair(key, pair)) return;
    difference.chains.push_back({pair.scope, key.table, key.name, chain_missing(key, pair), chain_extra(pair),
                                 drops(pair), is_dormant(pair), lines(pair)});
  });
  if (is_left_over(live, asked)) difference.tables = live.own_tables;
  if (!asked.rules.empty()) warn_of_earlier(live, difference.warnings);
  return difference;
}

bool equal(const Live& live, const Ruleset& asked) {
  bool all = !is_left_over(live, asked);
  for_each_pair(live, asked, [&](const Key& key, const Pair& pair) { all = all && equal_pair(key, pair); });
  return all;
}

bool PodDiff::equal() const {
  return std::ranges::all_of(backends, &Difference::empty) && missing == Routing{} && extra == Routing{};
}

std::string first_difference(const Difference& difference) {
  for (const ChainDiff& chain : difference.chains) {
    const std::string place = fmt::format("table {}, chain {}", name(chain.table), printable(chain.name));
    for (const DiffLine& line : chain.lines) {
      if (line.kind == DiffLine::Kind::missing) return place + ": missing: " + iptables_words(line.rule);
      if (line.kind == DiffLine::Kind::extra) return place + ": not requested: " + iptables_words(line.rule);
    }
    if (chain.missing) return place + ": missing";
    if (chain.extra) return place + ": not requested";
    if (chain.drops) return place + ": its policy is drop";
    return place + (chain.dormant ? ": its table is dormant" : "");
  }
  return difference.tables.empty() ? "" : "not requested: table " + difference.tables.front();
}

std::string first_difference(const PodDiff& pod_diff) {
  for (const Difference& difference : pod_diff.backends) {
    if (!difference.empty()) return fmt::format("{}: {}", name(difference.backend), first_difference(difference));
  }
  if (pod_diff.missing != Routing{}) return "missing: " + ip_commands(pod_diff.missing).front();
  if (pod_diff.extra != Routing{}) return "not requested: " + ip_commands(pod_diff.extra).front();
  return pod_diff.obstacles.empty() ? "" : text(pod_diff.obstacles.front());
}

Routing without(const Routing& a, const Routing& b) {
  return {without(a.policy_rules, b.policy_rules), without(a.local_routes, b.local_routes),
          without(a.loopback_addresses, b.loopback_addresses)};
}

}  // namespace sidetrack
