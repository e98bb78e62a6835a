// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/join.h"

#include <algorithm>
#include <optional>

#include "mesh/catalogue.h"
#include "mesh/describe.h"

namespace sidetrack::space {
namespace {

// Where the packet ends, so that the next rule is not asked; and nothing of it unknown, which each rule would be anew.
bool may_join(const Rule& rule) {
  const bool ends = std::holds_alternative<Verdict>(rule.target) || std::holds_alternative<Redirect>(rule.target);
  return ends && std::ranges::none_of(rule.matches,
                                      [](const Match& match) { return std::holds_alternative<UnknownMatch>(match); });
}

// Two lists of one kind, of which any value is enough.
bool are_lists(const Match& a, const Match& b) {
  // Of a source port it may only be known that it is one of many: whether a list has it is known for all or none.
  const auto* ports = std::get_if<PortMatch>(&a);
  return !is_negated(a) && are_alike(a, b) && (ports == nullptr || ports->end == End::destination);
}

// A rule and those that were joined to it, which differ from it in the list at `place` alone, and are there for the
// same reason.
struct Joined {
  LiveRule rule;
  std::optional<std::size_t> place;
  MeshRule reason{};
  std::vector<Match> each{};  // once there are more than one

  // Whether it has taken the next one.
  bool take(const LiveRule& next) {
    const auto& own = rule.rule.matches;
    const auto& others = next.rule.matches;
    const bool alike = rule.ours == next.ours && rule.rule.families == next.rule.families &&
                       own.size() == others.size() && rule.rule.target == next.rule.target && may_join(rule.rule);
    if (!alike) return false;
    std::optional<std::size_t> at = place;
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (place == i || own[i] == others[i]) continue;
      if (at) return false;
      at = i;
    }
    if (!at || !are_lists(own[*at], others[*at])) return false;
    if (!place) reason = describe(rule.rule).rule;
    if (describe(next.rule).rule != reason) return false;
    if (!place) each.push_back(own[*at]);
    each.push_back(others[*at]);
    place = at;
    take_values(rule.rule.matches[*at], others[*at]);
    return true;
  }
};

void join(LiveChain& chain, JoinedRules& rules) {
  std::vector<LiveRule> made;
  std::vector<std::pair<std::size_t, JoinedRule>> several;
  std::optional<Joined> open;
  const auto close = [&] {
    if (open && open->place) several.emplace_back(made.size(), JoinedRule{*open->place, std::move(open->each)});
    if (open) made.push_back(std::move(open->rule));
    open.reset();
  };
  unsigned number = 0;
  for (std::size_t i = 0; i < chain.rules.size(); ++i) {
    // A rule of nf_tables that is several here stays so.
    const bool is_more = is_more_of_one(chain, chain.rules[i]);
    if (!is_more) ++number;
    const bool is_one = !is_more && !(i + 1 < chain.rules.size() && is_more_of_one(chain, chain.rules[i + 1]));
    if (is_one && open && open->take(chain.rules[i])) continue;
    close();
    LiveRule rule = chain.rules[i];
    rule.number = number;
    if (is_one) {
      open = Joined{std::move(rule), {}};
    } else {
      made.push_back(std::move(rule));
    }
  }
  close();
  for (LiveRule& live : made) {
    for (Match& match : live.rule.matches) {
      auto* addresses = std::get_if<AddressMatch>(&match);
      if (addresses != nullptr && addresses->ranges.size() > 1)
        addresses->ranges = merged(std::move(addresses->ranges));
    }
  }
  chain.rules = std::move(made);
  for (auto& [place, joined] : several) rules.emplace(&chain.rules[place], std::move(joined));
}

}  // namespace

std::vector<Live> joined(std::vector<Live> live, JoinedRules& rules) {
  for (Live& one : live) {
    for (LiveChain& chain : one.chains) join(chain, rules);
  }
  return live;
}

}  // namespace sidetrack::space
