// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/ours.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/printable.h"
#include "rule/iptables.h"

namespace sidetrack {

bool is_wholly_ours(const LiveChain& chain) { return chain.ours && std::ranges::all_of(chain.rules, &LiveRule::ours); }

bool concerns_us(const LiveChain& chain) {
  return is_wholly_ours(chain) || std::ranges::any_of(chain.rules, &LiveRule::ours);
}

std::vector<std::string> kept_chains(const Live& seen) {
  std::vector<std::string> kept;
  for (const LiveChain& chain : seen.chains) {
    const auto others = std::ranges::find_if_not(chain.rules, &LiveRule::ours);
    if (!chain.ours || others == chain.rules.end()) continue;
    const auto count = std::ranges::count_if(chain.rules, [](const LiveRule& live) { return !live.ours; });
    kept.push_back(fmt::format("{}: the chain {} of the table {} ({}) stays, as another program has {} in it: {}",
                               name(seen.backend), printable(chain.name), chain.table_name, names(chain.families),
                               count == 1 ? "a rule" : fmt::format("{} rules", count), iptables_words(others->rule)));
  }
  return kept;
}

bool holds_rules(const Live& live) {
  return std::ranges::any_of(live.chains, [](const LiveChain& chain) {
    return chain.ours || !chain.rules.empty() || chain.policy != Verdict::accept;
  });
}

bool holds_others(const Live& live) {
  return std::ranges::any_of(live.chains, [](const LiveChain& chain) {
    return chain.dormant || (chain.hook && chain.policy != Verdict::accept) ||
           std::ranges::any_of(chain.rules, [](const LiveRule& rule) { return !rule.ours; });
  });
}

// A table of our own goes as a whole, or is written anew as a whole.
std::optional<Error> others_in_own_tables(const Live& seen) {
  const auto refusal = [&](const std::string& table, const std::string& what, const std::string& command) {
    return Error(ExitCode::failed,
                 fmt::format("{}: the table {} holds {} that Sidetrack did not make; nothing was changed",
                             name(seen.backend), printable(table), printable(what)),
                 fmt::format("move it to a table of its own, then remove it here: {}", printable(command)));
  };
  const auto is_own = [&](const std::string& table) {
    return std::ranges::find(seen.own_tables, table) != seen.own_tables.end();
  };
  for (const LiveChain& chain : seen.chains) {
    if (!chain.ours && is_own(chain.table_name)) {
      return refusal(chain.table_name, "the chain " + chain.name,
                     fmt::format("nft delete chain {} {}", chain.table_name, chain.name));
    }
  }
  for (const LiveChain& chain : seen.chains) {
    if (!chain.ours || !is_own(chain.table_name)) continue;
    const auto other = std::ranges::find(chain.rules, false, &LiveRule::ours);
    if (other == chain.rules.end()) continue;
    return refusal(chain.table_name, "the rule " + iptables_words(other->rule),
                   fmt::format("see nft -a list table {}", chain.table_name));
  }
  for (const LiveTable& table : seen.tables) {
    if (table.other_objects && is_own(table.name)) {
      return refusal(table.name, "a set or another object", fmt::format("see nft list table {}", table.name));
    }
  }
  return std::nullopt;
}

std::optional<Error> leads_to_removed(const Live& seen, const Ruleset& wanted) {
  const auto goes = [&](const LiveChain& chain) {
    const bool asked = std::ranges::any_of(wanted.rules, [&](const Rule& rule) {
      const auto* jump = std::get_if<Jump>(&rule.target);
      return rule.table == chain.table && !(rule.families & chain.families).empty() &&
             (rule.chain == chain.name || (jump != nullptr && jump->chain == chain.name));
    });
    return !asked && is_wholly_ours(chain);
  };
  const auto refusal = [&](const LiveChain& chain, const std::string& by, const std::string& hint) {
    return Error(
        ExitCode::failed,
        fmt::format("{}: the chain {} of the table {} ({}) cannot be removed: another program's {}", name(seen.backend),
                    printable(chain.name), chain.table_name, names(chain.families), printable(by)),
        printable(hint) + "; nothing was changed");
  };
  for (const LiveChain& from : seen.chains) {
    for (const LiveRule& live : from.rules) {
      const auto* jump = live.ours ? nullptr : std::get_if<Jump>(&live.rule.target);
      if (jump == nullptr) continue;
      const auto to = std::ranges::find_if(seen.chains, [&](const LiveChain& chain) {
        return chain.name == jump->chain && chain.table_name == from.table_name && chain.families == from.families;
      });
      if (to == seen.chains.end() || !goes(*to)) continue;
      return refusal(*to, "rule leads to it: " + iptables_words(live.rule), "delete that rule first");
    }
  }
  for (const LiveTable& table : seen.tables) {
    for (const MapJump& jump : table.jumps) {
      const auto to = std::ranges::find_if(seen.chains, [&](const LiveChain& chain) {
        return chain.name == jump.chain && chain.table_name == table.name;
      });
      if (to == seen.chains.end() || !goes(*to)) continue;
      return refusal(*to, "map leads to it: " + jump.map,
                     fmt::format("delete that element first: nft list map {} {}", table.name, jump.map));
    }
  }
  return std::nullopt;
}

std::optional<Error> owned_by_another(const Live& seen) {
  for (const LiveTable& table : seen.tables) {
    if (table.owner == 0) continue;
    const auto held = std::ranges::find_if(
        seen.chains, [&](const LiveChain& chain) { return chain.table_name == table.name && concerns_us(chain); });
    if (held == seen.chains.end()) continue;
    return Error(ExitCode::failed,
                 fmt::format("{}: the rules in the table {} cannot be removed: another process owns it (flags owner)",
                             name(seen.backend), printable(table.name)),
                 "it goes when that process ends; nothing was changed");
  }
  return std::nullopt;
}

}  // namespace sidetrack
