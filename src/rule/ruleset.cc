// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/ruleset.h"

#include <algorithm>

namespace sidetrack {
namespace {

// The chain that a rule jumps to, if it jumps.
const std::string* jump_of(const Rule& rule) {
  const auto* jump = std::get_if<Jump>(&rule.target);
  return jump != nullptr ? &jump->chain : nullptr;
}

// Where `-A` or `-I CHAIN N` puts a rule: before the Nth rule of each family that it is for.
std::vector<const Rule*>::iterator place_of(const Rule& rule, Families families, std::vector<const Rule*>& rules) {
  auto place = rules.end();
  if (!rule.insert_at) return place;
  for (Family family : (rule.families & families).list()) {
    unsigned count = 0;
    const auto is_nth = [&](const Rule* other) {
      return other->families.contains(family) && ++count == *rule.insert_at;
    };
    place = std::min(place, std::find_if(rules.begin(), rules.end(), is_nth));
  }
  return place;
}

}  // namespace

bool is_builtin(std::string_view chain) {
  static constexpr std::string_view builtin[] = {"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"};
  return std::ranges::find(builtin, chain) != std::end(builtin);
}

std::vector<Chain> chains(const Ruleset& ruleset, Table table, Families families) {
  std::vector<Chain> result;
  const auto chain = [&](const std::string& name) -> Chain& {
    const auto found = std::ranges::find(result, name, &Chain::name);
    return found != result.end() ? *found : result.emplace_back(Chain{table, name, {}});
  };
  const auto concerned = [&](const Rule& rule) { return rule.table == table && !(rule.families & families).empty(); };
  for (const Rule& rule : ruleset.rules) {
    if (!concerned(rule)) continue;
    auto& rules = chain(rule.chain).rules;
    rules.insert(place_of(rule, families, rules), &rule);
  }
  for (const Rule& rule : ruleset.rules) {
    if (concerned(rule) && jump_of(rule) != nullptr) chain(*jump_of(rule));
  }
  return result;
}

}  // namespace sidetrack
