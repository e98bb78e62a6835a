// SPDX-License-Identifier: GPL-2.0-or-later
// The backend nftables: table inet sidetrack, which is ours alone.
#include <linux/netfilter.h>

#include <algorithm>
#include <array>

#include "kernel/nft/native.h"
#include "kernel/nft/nf_tables.h"
#include "rule/fold.h"
#include "rule/live.h"
#include "rule/ours.h"

namespace sidetrack {
namespace {

using namespace nft;

// Istio's own nftables mode has one table for each of iptables', and so has its agent for ambient pods.
constexpr std::array<std::string_view, 7> own_tables = {own_table,          "istio-proxy-raw",   "istio-proxy-mangle",
                                                        "istio-proxy-nat",  "istio-ambient-raw", "istio-ambient-mangle",
                                                        "istio-ambient-nat"};

TableKey inet(const std::string& name) { return {NFPROTO_INET, name}; }

std::vector<Expression> expressions_of(const NativeRule& rule) {
  std::vector<Expression> expressions;
  for (const Statement& statement : rule.statements) {
    expressions.insert(expressions.end(), statement.expressions.begin(), statement.expressions.end());
  }
  return expressions;
}

// The tables whose rules are ours.
bool is_own(const TableKey& key) {
  if (key.family != NFPROTO_INET) return false;
  return std::ranges::find(own_tables, key.name) != own_tables.end();
}

// The table with all that is in it, in the order of the script that render prints.
void add(Transaction& transaction, const TableKey& key, const NativeTable& table) {
  transaction.add_table(key);
  for (const Set& set : table.sets) transaction.add_set(key, set);
  for (const NativeChain& chain : table.chains) transaction.add_chain(key, chain.name, chain.hook);
  for (const NativeChain& chain : table.chains) {
    for (const NativeRule& rule : chain.rules) {
      transaction.add_rule({key, chain.name}, expressions_of(rule), rule.comment, *rule.source);
    }
  }
}

}  // namespace

namespace nft {

bool is_native(const TableKey& table) { return of_pods(table) && !is_of_iptables(table); }

Live native_live(const Dump& seen, const MeshRules& mesh) {
  Live live{BackendKind::nftables, {}, seen.generation, {}};
  const CgroupPaths cgroups;
  for (const KernelTable& table : seen.tables) {
    if (!is_native(table.key)) continue;
    const bool own = is_own(table.key);
    if (own) live.own_tables.push_back(text(table.key));
    live.tables.push_back(live_table(table));
    std::ranges::move(own ? rules_of(table, cgroups, mesh) : foreign_rules_of(table, cgroups),
                      std::back_inserter(live.chains));
  }
  return live;
}

// add table inet sidetrack; delete table inet sidetrack; and the new one. Deleting makes the commit wait for RCU (10 to
// 15 ms on Linux 6.18), so only what is there is deleted.
void change_nftables(const Live& seen, const Ruleset& wanted, Transaction& transaction) {
  transaction.begin(BackendKind::nftables);
  if (const auto refused = others_in_own_tables(seen)) throw *refused;
  for (const std::string_view name : own_tables) {
    const TableKey key = inet(std::string(name));
    if (std::ranges::find(seen.own_tables, text(key)) != seen.own_tables.end()) transaction.delete_table(key);
  }
  const NativeTable table = native(transaction.keep(fold(wanted)), transaction.mesh());
  if (!table.chains.empty()) add(transaction, inet(own_table), table);
}

}  // namespace nft
}  // namespace sidetrack
