// SPDX-License-Identifier: GPL-2.0-or-later
// Native tables, read back as the rules of iptables that they stand for.
#include <fmt/format.h>

#include <algorithm>

#include "kernel/nft/kernel_table.h"
#include "kernel/nft/names.h"
#include "kernel/nft/rule_reader.h"
#include "rule/reach.h"

namespace sidetrack::nft {
namespace {

bool is_sidetracks(const KernelTable& table) { return table.key.name == own_table; }

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
  return is_builtin(name_of) || mesh.has_chain(name_of);
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
  join_tproxy(live.rules);
  return live;
}

bool is_of_frames(const TableKey& table) { return table.family == NFPROTO_ARP || table.family == NFPROTO_BRIDGE; }

Families families_of(const TableKey& table) {
  if (table.family == NFPROTO_IPV4) return Family::ipv4;
  if (is_of_frames(table)) return {};
  return table.family == NFPROTO_IPV6 ? Families(Family::ipv6) : Families::both();
}

}  // namespace

LiveTable live_table(const KernelTable& table) {
  constexpr std::uint32_t persist = 4;  // NFT_TABLE_F_PERSIST, kernel 6.9
  return {text(table.key),
          (table.flags & NFT_TABLE_F_DORMANT) != 0,
          (table.flags & persist) != 0,
          table.owner,
          table.uses > table.chains.size() + table.sets.size(),
          table.jumps};
}

std::vector<LiveChain> foreign_rules_of(const KernelTable& table, const CgroupPaths& cgroups) {
  std::vector<LiveChain> chains;
  for (const KernelChain& chain : table.chains) {
    const RuleContext context{families_of(table.key),  Table::other, chain.name, {}, table.sets, true,
                              is_of_frames(table.key), &cgroups};
    LiveChain live = read_chain(table, chain, context);
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

std::vector<LiveChain> rules_of(const KernelTable& table, const CgroupPaths& cgroups, const MeshRules& mesh) {
  std::vector<LiveChain> chains;
  for (const KernelChain& chain : table.chains) {
    const Table in = table_of(table, chain.name);
    std::string name = model_chain(table, chain, in);
    if (is_sidetracks(table) && chain.hook != builtin_hook(in, name)) name = chain.name;
    const RuleContext context{Families::both(), in, name, prefix_of(table, in), table.sets, true, false, &cgroups};
    LiveChain& live = chains.emplace_back(read_chain(table, chain, context));
    live.ours = is_known(table, chain, in, mesh);
    for (LiveRule& rule : live.rules) rule.ours = live.ours && (!is_sidetracks(table) || mesh.has_rule(rule.rule));
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

}  // namespace sidetrack::nft
