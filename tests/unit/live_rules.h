// SPDX-License-Identifier: GPL-2.0-or-later
// Live rules written by hand, as a backend would read them.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rule/live.h"

namespace sidetrack {

inline LiveChain chain(Families families, Table table, const char* name, bool ours,
                       const std::vector<std::pair<std::vector<Match>, Target>>& rules) {
  LiveChain made{families, table, name, ours, {}, Verdict::accept, builtin_hook(table, name)};
  made.table_name = sidetrack::name(table);
  std::uint64_t packets = 0;
  for (const auto& [matches, target] : rules) {
    const Rule rule{families, table, name, matches, target, {}, {}};
    const auto* jump = std::get_if<Jump>(&target);
    const bool our_rule = ours || (jump != nullptr && jump->chain.starts_with("ISTIO_"));
    made.rules.push_back({rule, {packets, packets * 60}, our_rule, 0});
    ++packets;
  }
  return made;
}

// Rules of other programs in iptables' words, each after its table: "filter -A OUTPUT -p tcp -j DROP".
Live rules_of_others(BackendKind backend, Family family, std::initializer_list<std::string_view> rules);

// Puts a rule of another program first into a chain of the first of them; makes the chain if there is none.
void add_first(std::vector<Live>& all, Family family, Table table, const std::string& words);

// What Istio 1.1 left in a pod.
Live istio_1_1();

// nat OUTPUT leads to fourteen layers of four chains, each of which jumps to all four of the next layer under these
// conditions: the ways through them are four to the power of their number. The last ones have `last`.
Live layered(const std::vector<std::vector<Match>>& conditions, const Target& last);

}  // namespace sidetrack
