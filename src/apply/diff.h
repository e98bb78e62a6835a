// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apply/obstacles.h"
#include "pod/routing.h"
#include "rule/live.h"
#include "walk/forwarded_dns.h"

namespace sidetrack {

// One line of a chain's comparison. `foreign` lines are others' rules, shown where they stand.
struct DiffLine {
  enum class Kind : std::uint8_t { same, missing, extra, foreign };
  Kind kind = Kind::same;
  Rule rule;
};

// A chain that is not as asked: rules in the order of both sides, with what they have in common.
struct ChainDiff {
  Families families;
  Table table = Table::nat;
  std::string name;
  bool missing = false;  // the chain itself is asked for and not there
  bool extra = false;    // the chain itself is there and not asked for
  bool drops = false;    // its policy is drop, in a table of our own
  bool dormant = false;  // its table is: the kernel asks none of its chains
  std::vector<DiffLine> lines;
};

// What has to change in one backend to get from what is there to what is asked. Counters, handles and others' rules do
// not count.
struct Difference {
  BackendKind backend = BackendKind::iptables_nft;
  std::vector<ChainDiff> chains;      // only those that differ
  std::vector<std::string> warnings;  // others' rules that stand before ours and may decide first
  std::vector<std::string> tables;    // of our own, of nftables, with nothing in them and not asked for
  [[nodiscard]] bool empty() const { return chains.empty() && tables.empty(); }
};

// The same for the whole namespace: the backend that holds the rules, or is to; and those that should hold none.
struct PodDiff {
  std::vector<Difference> backends;  // the one that is asked for first
  Routing missing;
  Routing extra;
  std::vector<Obstacle> obstacles{};        // of others: what applying cannot mend
  std::vector<LostReplies> lost_replies{};  // by the requested rules themselves: said, and no difference
  std::string refusal{};                    // why applying would change nothing, if it would refuse to
  std::optional<BackendKind> backend{};     // that holds the rules, or is to; nothing: no rules are requested
  [[nodiscard]] bool equal() const;         // the rules and routes; obstacles apart
  [[nodiscard]] bool as_requested() const { return equal() && obstacles.empty(); }
};

// `asked` in the form in which the backend stores it (canonical() in kernel/survey.h). Only rules and chains that are
// ours take part.
[[nodiscard]] Difference diff(const Live& live, const Ruleset& asked);

// The first thing that differs: "table nat, chain ISTIO_OUTPUT: missing: -A ISTIO_OUTPUT …"; of a comparison with the
// backend, or the route or what of others is in the way: "missing: ip rule add …". Empty if there is none.
[[nodiscard]] std::string first_difference(const Difference& difference);
[[nodiscard]] std::string first_difference(const PodDiff& pod_diff);

// The same as diff(…).empty() for the rules alone, without building it.
[[nodiscard]] bool equal(const Live& live, const Ruleset& asked);

// What `a` has and `b` has not, or less often.
[[nodiscard]] Routing without(const Routing& a, const Routing& b);

}  // namespace sidetrack
