// SPDX-License-Identifier: GPL-2.0-or-later
// A rule as a plain value. No kernel header is needed to read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rule/match.h"
#include "rule/table.h"
#include "rule/target.h"

namespace sidetrack {

// What tells why a rule is there; reason_of() and describe() of mesh/ say it in words.
enum class MeshRule : std::uint8_t;  // mesh/catalogue.h
struct RuleOrigin {
  MeshRule rule{};             // which of Istio's rules it was made as; 0: not known
  const char* flag = nullptr;  // what asked for it, if another than usual: a string literal
  std::string comment;         // that another program gave it
};

struct Rule {
  Families families;
  Table table = Table::nat;
  std::string chain;
  std::vector<Match> matches;  // in the order in which iptables-restore text shows them
  Target target = Verdict::return_;
  RuleOrigin origin;
  std::optional<unsigned> insert_at;  // -I CHAIN N, counted from 1; otherwise appended
  // Of one that is put back: behind so many rules of others in its chain, see splice(). All rules of a chain have it.
  std::optional<std::size_t> after_others{};

  // Equal in what they do: the origin, the way into the chain (-A, -I) and the order of the words do not count.
  // (The order among matches of the same kind does.) Neither do words that match everything: `-d 0.0.0.0/0`, `-i +`.
  friend bool operator==(const Rule& a, const Rule& b);
};

// Equal but for the families: a rule for both stands once in the table of each.
[[nodiscard]] bool same_effect(const Rule& a, const Rule& b);

// Whether all of the rule is understood: its matches, with what their sets hold, and its target.
[[nodiscard]] bool is_understood(const Rule& rule);

}  // namespace sidetrack
