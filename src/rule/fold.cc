// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/fold.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "rule/reach.h"

namespace sidetrack {
namespace {

// How far back a rule looks for one that it can join. Our longest alternation of rules is two (tcp and udp, or divert
// and tproxy); the limit keeps folding linear for rulesets that do not fold.
constexpr std::size_t look_back = 16;

// The most comparisons that are made to find two lists of values disjoint.
constexpr std::size_t max_comparisons = 4096;

// A rule of the result.
struct Folded {
  Rule rule;
  std::optional<std::size_t> varying;  // the match that holds the values of all
};

// ---- The normal form of one rule.

std::vector<AddressRange> normal(std::vector<AddressRange> ranges) {
  return ranges.size() == 1 ? ranges : merged(std::move(ranges));
}

// A short list of single numbers stays as it was asked for ("15020, 15021"), and ids stay single in any list: a range
// of them is compared in another byte order than one of them. Other neighbours become a range, as an interval set holds
// them.
template <typename Number>
bool joins_neighbours(const std::vector<Range<Number>>& ranges) {
  const bool is_long = std::is_same_v<Number, std::uint16_t> && ranges.size() > longest_in_a_rule;
  return is_long || std::ranges::any_of(ranges, [](const auto& range) { return range.first != range.last; });
}

template <typename Number>
std::vector<Range<Number>> normal(std::vector<Range<Number>> ranges) {
  std::ranges::sort(ranges);
  const auto doubles = std::ranges::unique(ranges);
  ranges.erase(doubles.begin(), doubles.end());
  const std::uint64_t gap = joins_neighbours(ranges) ? 1 : 0;
  std::vector<Range<Number>> result;
  for (const Range<Number>& range : ranges) {
    if (!result.empty() && range.first <= std::uint64_t{result.back().last} + gap) {
      result.back().last = std::max(result.back().last, range.last);
    } else {
      result.push_back(range);
    }
  }
  return result;
}

// `! --gid-owner 1 ! --gid-owner 2`: neither of both, which is one negated match over both.
void join_negated(std::vector<Match>& matches) {
  for (std::size_t i = 0; i < matches.size(); ++i) {
    for (std::size_t j = matches.size(); is_negated(matches[i]) && --j > i;) {
      if (!are_alike(matches[i], matches[j])) continue;
      take_values(matches[i], matches[j]);
      matches.erase(matches.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
}

void normalize(Rule& rule) {
  for (Match& match : rule.matches) {
    with_list(match, [](auto& values) { values = normal(std::move(values)); });
  }
  std::erase_if(rule.matches, matches_everything);
}

// ---- Joining.

// The index of the one match in whose values two rules differ; their count of matches if they do not differ at all.
// Those of different rows of the catalogue stay apart, so that each can say why it is there.
std::optional<std::size_t> joint(const Folded& before, const Rule& rule) {
  const Rule& other = before.rule;
  if (other.matches.size() != rule.matches.size() || other.families != rule.families || other.target != rule.target ||
      other.origin.rule != rule.origin.rule || !is_understood(rule)) {
    return std::nullopt;
  }
  std::size_t differing = rule.matches.size();
  for (std::size_t i = 0; i < rule.matches.size(); ++i) {
    if (std::holds_alternative<UnknownMatch>(rule.matches[i])) return std::nullopt;
    const bool here = before.varying == i;
    if (!here && other.matches[i] == rule.matches[i]) continue;
    if (differing != rule.matches.size() || (before.varying && !here) || is_negated(rule.matches[i]) ||
        !are_alike(other.matches[i], rule.matches[i])) {
      return std::nullopt;
    }
    differing = i;
  }
  return differing;
}

template <typename Values>
bool apart(const Values& a, const Values& b) {
  if (a.size() * b.size() > max_comparisons) return false;
  return std::ranges::none_of(a, [&](const auto& x) {
    return std::ranges::any_of(b, [&](const auto& y) { return x.first <= y.last && y.first <= x.last; });
  });
}

bool disjoint(const Match& a, const Match& b) {
  if (is_negated(a) || is_negated(b) || a.index() != b.index()) return false;
  if (const auto* protocol = std::get_if<ProtocolMatch>(&a)) {
    return protocol->protocol != std::get<ProtocolMatch>(b).protocol;
  }
  if (!are_alike(a, b)) return false;
  bool are_apart = false;
  with_list(a, [&](const auto& values) {
    with_list(b, [&](const auto& others) {
      if constexpr (std::is_same_v<decltype(values), decltype(others)>) are_apart = apart(values, others);
    });
  });
  return are_apart;
}

// Two neighbours whose order does not matter.
bool interchangeable(const Rule& a, const Rule& b) {
  if (a.target == b.target || (a.families & b.families).empty()) return true;
  return std::ranges::any_of(a.matches, [&](const Match& x) {
    return std::ranges::any_of(b.matches, [&](const Match& y) { return disjoint(x, y); });
  });
}

void add(std::vector<Folded>& chain, const Rule& original) {
  std::optional<Rule> changed;  // copied where it must be: most of a long list only give their values
  if (std::ranges::count_if(original.matches, is_negated) > 1) {
    changed = original;
    join_negated(changed->matches);
  }
  const Rule& rule = changed ? *changed : original;
  std::size_t steps = 0;
  for (auto place_before = chain.rbegin(); place_before != chain.rend(); ++place_before) {
    Folded& before = *place_before;
    if (++steps > look_back) break;
    if (const auto place = joint(before, rule)) {
      if (*place < rule.matches.size()) {
        take_values(before.rule.matches[*place], rule.matches[*place]);
        before.varying = *place;
      }
      return;
    }
    if (!interchangeable(before.rule, rule)) break;
  }
  chain.push_back({rule, {}});
  chain.back().rule.insert_at.reset();
}

Ruleset fold_once(const Ruleset& ruleset) {
  Ruleset result;
  for (const Table table : all_tables) {
    for (const Chain& chain : chains(ruleset, table, Families::both())) {
      std::vector<Folded> folded;
      for (const Rule* rule : chain.rules) add(folded, *rule);
      for (Folded& each : folded) {
        normalize(each.rule);
        result.rules.push_back(std::move(each.rule));
      }
    }
  }
  narrow_to_reach(result);
  return result;
}

}  // namespace

// Rules that were joined over one match, or that lost one, may have become alike but for another.
Ruleset fold(const Ruleset& ruleset) {
  if (ruleset.folded) return ruleset;
  Ruleset result = fold_once(ruleset);
  for (std::size_t before = 0; before != result.rules.size();) {
    before = result.rules.size();
    result = fold_once(result);
  }
  result.folded = true;
  return result;
}

}  // namespace sidetrack
