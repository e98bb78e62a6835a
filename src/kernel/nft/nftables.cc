// SPDX-License-Identifier: GPL-2.0-or-later
// The backend nftables: table inet sidetrack, which is ours alone, written whole and read back as the rules of iptables
// that it stands for, as any other native table is.
#include <fmt/format.h>
#include <linux/netfilter.h>

#include <algorithm>

#include "kernel/nft/kernel_table.h"
#include "kernel/nft/names.h"
#include "kernel/nft/native.h"
#include "kernel/nft/nf_tables.h"
#include "kernel/nft/rule_reader.h"
#include "rule/fold.h"
#include "rule/live.h"
#include "rule/nft/fields.h"
#include "rule/ours.h"
#include "rule/reach.h"

namespace sidetrack::nft {
namespace {

// The tables whose rules are ours.
bool is_own_table(const TableKey& key, const MeshRules& mesh) {
  return key.family == NFPROTO_INET && std::ranges::find(mesh.tables, key.name) != mesh.tables.end();
}

// ---- Reading.

bool is_sidetracks(const KernelTable& table) { return table.key.name == own_nft_table; }

// Istio's own native tables: istio-proxy-nat and the like hold the chains of one table each.
Table table_of(const KernelTable& table, const std::string& chain) {
  const bool own = is_sidetracks(table);
  for (const Table each : all_tables) {
    if (own ? chain.starts_with(chain_name(each, "")) : table.key.name.ends_with(name(each))) return each;
  }
  return Table::nat;
}

// What the names of the chains begin with, before iptables' own name.
std::string prefix_of(const KernelTable& table, Table in) { return is_sidetracks(table) ? chain_name(in, "") : ""; }

std::string model_chain(const KernelTable& table, const KernelChain& chain, Table in) {
  if (!is_sidetracks(table)) return std::string(chain.hook ? name(chain.hook->hook) : chain.name);
  const std::string prefix = prefix_of(table, in);
  return chain.name.starts_with(prefix) ? chain.name.substr(prefix.size()) : chain.name;
}

constexpr const char* dropped_by_tproxy = "dropped if no transparent socket takes it";

// A tproxy rule stands for TPROXY only together with the rule that drops what no socket took.
void join_tproxy(std::vector<LiveRule>& rules) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const auto* tproxy = std::get_if<Tproxy>(&rules[i].rule.target);
    if (tproxy == nullptr) continue;
    const bool dropped = i + 1 < rules.size() && rules[i + 1].rule.target == Target(Verdict::drop) &&
                         rules[i + 1].rule.matches == rules[i].rule.matches;
    if (dropped) {
      rules.erase(rules.begin() + static_cast<std::ptrdiff_t>(i + 1));
    } else {
      rules[i].rule.target = UnknownTarget{fmt::format("tproxy to :{}, or else pass", tproxy->port)};
    }
  }
}

// Tells whether Sidetrack makes the rule, alone or as the second of the two of a TPROXY: the first may have been
// deleted.
bool has_rule(const MeshRules& mesh, const Rule& rule) {
  if (mesh.has_rule(rule)) return true;
  if (rule.target != Target(Verdict::drop) || !rule.origin.comment.ends_with(dropped_by_tproxy)) return false;
  Rule first = rule;
  first.target = Tproxy{1, 1};
  return mesh.has_rule(first);
}

// Whether the chain is one that Sidetrack or Istio makes in this table; others in it are another program's.
bool is_known(const KernelTable& table, const KernelChain& chain, Table in, const MeshRules& mesh) {
  std::string name_of = chain.name;
  if (is_sidetracks(table)) {
    const std::string prefix = prefix_of(table, in);
    if (!name_of.starts_with(prefix)) return false;
    name_of.erase(0, prefix.size());
  } else {
    name_of = mesh.iptables_name(std::move(name_of));
  }
  return is_builtin(name_of) || mesh.has_chain(mesh, name_of);
}

LiveChain read_chain(const KernelTable& table, const KernelChain& chain, const RuleContext& context) {
  LiveChain live{context.families, context.table, context.chain, false, {}, chain.policy, chain.hook, text(table.key)};
  live.dormant = (table.flags & NFT_TABLE_F_DORMANT) != 0;
  for (const KernelRule& rule : chain.rules) {
    for (LiveRule& made : read_rule(rule, context)) {
      made.rule.origin.comment = rule.comment;
      live.rules.push_back(std::move(made));
    }
  }
  return live;
}

bool is_of_frames(const TableKey& table) { return table.family == NFPROTO_ARP || table.family == NFPROTO_BRIDGE; }

Families families_of(const TableKey& table) {
  if (table.family == NFPROTO_IPV4) return Family::ipv4;
  if (is_of_frames(table)) return {};
  return table.family == NFPROTO_IPV6 ? Families(Family::ipv6) : Families::both();
}

// The chains of a native table that is not ours, under the names that they have there.
std::vector<LiveChain> foreign_rules_of(const KernelTable& table, Reading& reading) {
  std::vector<LiveChain> chains;
  for (const KernelChain& chain : table.chains) {
    const RuleContext context{families_of(table.key),
                              Table::other,
                              chain.name,
                              {},
                              table.sets,
                              true,
                              is_of_frames(table.key),
                              &reading,
                              table.key.family == NFPROTO_NETDEV};
    LiveChain live = read_chain(table, chain, context);
    join_tproxy(live.rules);
    // One at several devices is as many chains.
    for (std::size_t i = 1; i < chain.devices.size(); ++i) {
      live.hook->device = chain.devices[i];
      chains.push_back(live);
    }
    if (!chain.devices.empty()) live.hook->device = chain.devices.front();
    chains.push_back(std::move(live));
  }
  return chains;
}

// ---- Writing.

std::vector<NativeRule> translate(const Rule& rule, const RuleNotes& notes, Families arriving, Sets& sets) {
  RuleWriter writer(rule, arriving, sets, notes.set);
  for (const Match& match : rule.matches) std::visit([&](const auto& one) { one.to_nft(writer); }, match);
  std::vector<Statement> matched;
  const bool is_tproxy = std::holds_alternative<Tproxy>(rule.target);
  if (is_tproxy) matched = writer.statements();
  writer.add("counter", {Count{0, 0}});
  std::visit([&](const auto& one) { one.to_nft(writer); }, rule.target);

  std::vector<NativeRule> rules;
  rules.push_back({writer.take(), comment(notes.flag, notes.sentence), &rule});
  if (is_tproxy) {
    // The xtables target drops what no transparent socket takes; the native statement ends the rule and lets it pass.
    NativeRule drop{std::move(matched), comment(notes.flag, dropped_by_tproxy), &rule};
    drop.statements.push_back({"counter", {Count{0, 0}}});
    drop.statements.push_back({"drop", {Decide{NF_DROP, {}}}});
    rules.push_back(std::move(drop));
  }
  return rules;
}

TableKey inet(const std::string& name) { return {NFPROTO_INET, name}; }

std::vector<Expression> expressions_in(const NativeRule& rule) {
  std::vector<Expression> expressions;
  for (const Statement& statement : rule.statements) {
    expressions.insert(expressions.end(), statement.expressions.begin(), statement.expressions.end());
  }
  return expressions;
}

// The table with all that is in it, in the order of the script that render prints.
void add(Transaction& transaction, const TableKey& key, const NativeTable& table) {
  transaction.add_table(key);
  for (const Set& set : table.sets) transaction.add_set(key, set);
  for (const NativeChain& chain : table.chains) transaction.add_chain(key, chain.name, chain.hook);
  for (const NativeChain& chain : table.chains) {
    for (const NativeRule& rule : chain.rules) {
      transaction.add_rule({key, chain.name}, expressions_in(rule), rule.comment, *rule.source);
    }
  }
}

}  // namespace

std::vector<LiveChain> rules_of(const KernelTable& table, Reading& reading, const MeshRules& mesh) {
  std::vector<LiveChain> chains;
  for (const KernelChain& chain : table.chains) {
    const Table in = table_of(table, chain.name);
    std::string name = model_chain(table, chain, in);
    if (is_sidetracks(table) && chain.hook != builtin_hook(in, name)) name = chain.name;
    const RuleContext context{Families::both(), in, name, prefix_of(table, in), table.sets, true, false, &reading};
    LiveChain& live = chains.emplace_back(read_chain(table, chain, context));
    live.ours = is_known(table, chain, in, mesh);
    for (LiveRule& rule : live.rules) rule.ours = live.ours && (!is_sidetracks(table) || has_rule(mesh, rule.rule));
    join_tproxy(live.rules);
  }

  // Which families a rule is for, where it does not say so itself: those that come to its chain.
  Ruleset all;
  for (const LiveChain& chain : chains) {
    for (const LiveRule& live : chain.rules) {
      all.rules.push_back({live.rule.families, live.rule.table, live.rule.chain, {}, live.rule.target, {}, {}});
    }
  }
  narrow_to_reach(all);
  std::size_t next = 0;
  for (LiveChain& chain : chains) {
    for (LiveRule& live : chain.rules) live.rule.families = all.rules[next++].families;
  }
  return chains;
}

LiveTable live_table(const KernelTable& table) {
  constexpr std::uint32_t persist = 4;  // NFT_TABLE_F_PERSIST, kernel 6.9
  return {text(table.key),
          (table.flags & NFT_TABLE_F_DORMANT) != 0,
          (table.flags & persist) != 0,
          table.owner,
          table.uses > table.chains.size() + table.sets.size(),
          table.jumps};
}

NativeTable native(const Ruleset& ruleset, const MeshRules& mesh) {
  NativeTable table;
  Sets sets;
  const Reach reach(ruleset);
  for (const Table each : all_tables) {
    for (const Chain& chain : chains(ruleset, each, Families::both())) {
      table.chains.push_back({chain_name(each, chain.name), builtin_hook(each, chain.name), {}});
      NativeChain& made = table.chains.back();
      for (const Rule* rule : chain.rules) {
        for (NativeRule& part : translate(*rule, mesh.notes(*rule), reach(each, chain.name), sets)) {
          made.rules.push_back(std::move(part));
        }
      }
    }
  }
  table.sets = sets.take();
  return table;
}

bool is_native(const TableKey& table) { return of_pods(table) && !is_of_iptables(table); }

Live native_live(const Dump& seen, const MeshRules& mesh) {
  Live live{BackendKind::nftables, {}, seen.generation, {}};
  Reading reading;
  for (const KernelTable& table : seen.tables) {
    if (!is_native(table.key)) continue;
    const bool own = is_own_table(table.key, mesh);
    if (own) live.own_tables.push_back(text(table.key));
    live.tables.push_back(live_table(table));
    std::ranges::move(own ? rules_of(table, reading, mesh) : foreign_rules_of(table, reading),
                      std::back_inserter(live.chains));
  }
  return live;
}

// add table inet sidetrack; delete table inet sidetrack; and the new one. Deleting makes the commit wait for RCU (10 to
// 15 ms on Linux 6.18), so only what is there is deleted.
void change_nftables(const Live& seen, const Ruleset& wanted, Transaction& transaction) {
  transaction.begin(BackendKind::nftables);
  if (const auto refused = others_in_own_tables(seen)) throw *refused;
  for (const std::string_view name : transaction.mesh().tables) {
    const TableKey key = inet(std::string(name));
    if (std::ranges::find(seen.own_tables, text(key)) != seen.own_tables.end()) transaction.delete_table(key);
  }
  const NativeTable table = native(transaction.keep(fold(wanted)), transaction.mesh());
  if (!table.chains.empty()) add(transaction, inet(own_nft_table), table);
}

}  // namespace sidetrack::nft
