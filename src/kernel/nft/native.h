// SPDX-License-Identifier: GPL-2.0-or-later
// The tables of rules that nf_tables holds natively.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rule/live.h"
#include "rule/mesh_rules.h"
#include "rule/nft/writer.h"
#include "rule/ruleset.h"

namespace sidetrack::nft {

// A table, with its family as nf_tables numbers it (NFPROTO_INET, NFPROTO_IPV4, NFPROTO_IPV6).
struct TableKey {
  std::uint8_t family = 0;
  std::string name;
  friend auto operator<=>(const TableKey&, const TableKey&) = default;
};
[[nodiscard]] std::string text(const TableKey& table);  // "inet sidetrack", "ip nat"

struct NativeRule {
  std::vector<Statement> statements;
  std::string comment;
  const Rule* source = nullptr;  // not owned: of the ruleset that it was made of, which outlives it; nullptr: of none
};

struct NativeChain {
  std::string name;
  std::optional<HookPoint> hook;
  std::vector<NativeRule> rules;
};

struct NativeTable {
  std::vector<Set> sets;
  std::vector<NativeChain> chains;
};

// `ruleset` is folded. The result points into it.
[[nodiscard]] NativeTable native(const Ruleset& ruleset, const MeshRules& mesh);

}  // namespace sidetrack::nft
