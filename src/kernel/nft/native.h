// SPDX-License-Identifier: GPL-2.0-or-later
// Rules as nf_tables holds them natively: for each statement what `nft` prints and what the kernel takes, side by side.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernel/nft/expression.h"
#include "model/live.h"
#include "model/mesh_rules.h"
#include "model/ruleset.h"

namespace sidetrack::nft {

inline constexpr const char* own_table = "sidetrack";  // table inet sidetrack

// A table, with its family as nf_tables numbers it (NFPROTO_INET, NFPROTO_IPV4, NFPROTO_IPV6).
struct TableKey {
  std::uint8_t family = 0;
  std::string name;
  friend auto operator<=>(const TableKey&, const TableKey&) = default;
};
[[nodiscard]] std::string text(const TableKey& table);  // "inet sidetrack", "ip nat"

// tcp dport 80: meta load l4proto, cmp, payload load, cmp
struct Statement {
  std::string text;
  std::vector<Expression> expressions;
};

// What a set can hold: nft's name for it, the number by which nft knows it, its size in bytes, its byte order.
struct KeyType {
  const char* name;
  std::uint32_t number;
  std::uint32_t size;
  bool host_order;
};

// A set of values, first and last included. A short one is anonymous and stands in its rule; a long one has a name, and
// rules with the same list share it.
struct Set {
  explicit Set(const KeyType& of) : type(of) {}

  std::string name;  // "__set%d" for an anonymous one: the kernel gives it a number
  std::uint32_t id = 0;
  KeyType type;
  bool anonymous = true;
  bool interval = false;  // holds a value that is not single
  std::vector<std::pair<Data, Data>> values;
  std::function<std::vector<std::string>()> texts;  // of the values; as long as the rule lives
};

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

// nat-ISTIO_OUTPUT: raw, mangle and nat share one table.
[[nodiscard]] std::string chain_name(Table table, const std::string& chain);

}  // namespace sidetrack::nft
