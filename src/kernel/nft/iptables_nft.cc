// SPDX-License-Identifier: GPL-2.0-or-later
// The backend iptables-nft: the tables of iptables in the families ip and ip6, which all programs share.
#include <fmt/format.h>
#include <linux/netfilter.h>

#include <algorithm>
#include <optional>

#include "kernel/nft/iptables_rule.h"
#include "kernel/nft/names.h"
#include "kernel/nft/nf_tables.h"
#include "kernel/nft/rule_reader.h"
#include "model/error.h"
#include "rule/iptables.h"
#include "rule/live.h"
#include "rule/nft/fields.h"
#include "rule/ours.h"
#include "rule/splice.h"

namespace sidetrack {
namespace {

using namespace nft;

// One table of one family.
struct IptablesTable {
  Family family;
  Table table;
  [[nodiscard]] TableKey key() const { return {nfproto(family), std::string(name(table))}; }
};

std::optional<IptablesTable> iptables_table_of(const TableKey& key) {
  const auto table = table_named(key.name);
  if (!table || (key.family != NFPROTO_IPV4 && key.family != NFPROTO_IPV6)) return std::nullopt;
  return IptablesTable{key.family == NFPROTO_IPV4 ? Family::ipv4 : Family::ipv6, *table};
}

// ---- Reading.

LiveChain read_chain(const KernelTable& table, const KernelChain& chain, const IptablesTable& place, Reading& reading) {
  LiveChain live{place.family, place.table, chain.name, false, {}, chain.policy, {}, {}};
  live.hook = chain.hook;
  live.table_name = text(table.key);
  live.dormant = (table.flags & NFT_TABLE_F_DORMANT) != 0;
  const RuleContext context{place.family, place.table, live.name, {}, table.sets, false, false, &reading};
  for (const KernelRule& rule : chain.rules) {
    for (LiveRule& made : read_rule(rule, context)) {
      made.rule = in_iptables_order(std::move(made.rule));
      if (!rule.comment.empty()) made.rule.matches.emplace_back(CommentMatch{rule.comment});
      live.rules.push_back(std::move(made));
    }
  }
  return live;
}

// Whether nothing of others is lost with the chain: it holds rules of ours alone, or none, and lets everything pass.
bool has_only_ours(const LiveChain& chain) {
  return is_wholly_ours(chain) ||
         (chain.hook && chain.hook == builtin_hook(chain.table, chain.name) && chain.policy == Verdict::accept &&
          std::ranges::all_of(chain.rules, &LiveRule::ours));
}

// The same of a table: no sets or other objects in it, either.
bool table_has_only_ours(const KernelTable& table, std::span<const LiveChain> chains) {
  return table.uses == table.chains.size() &&
         std::ranges::all_of(chains, [](const LiveChain& chain) { return has_only_ours(chain); });
}

// ---- Writing.

// How one chain changes.
struct ChainChange {
  std::string name;
  const LiveChain* there = nullptr;
  std::vector<Slot> slots;
  bool wanted = true;

  // A chain of ours is written anew as a whole: the kernel finds a rule to delete or to insert before by walking the
  // chain, which for a long list would take time with its square.
  [[nodiscard]] bool anew() const { return there == nullptr || is_wholly_ours(*there); }
  [[nodiscard]] bool unchanged() const {
    return there != nullptr && wanted && changes_nothing(slots, there->rules.size());
  }
};

void require_awake(const IptablesTable& place, const Live& seen) {
  const std::string table = text(place.key());
  const auto found = std::ranges::find(seen.tables, table, &LiveTable::name);
  if (found == seen.tables.end() || !found->dormant) return;
  throw Error(ExitCode::failed,
              fmt::format("iptables-nft: the table {} is dormant: the kernel calls none of its chains", table),
              fmt::format("see 'nft list table {}'; delete it, or choose --backend nftables", table))
      .as_of_one_backend();
}

// Rules in such a chain would never be evaluated, or at another hook than they are meant for.
void require_called(const IptablesTable& place, const LiveChain& there) {
  const auto meant = builtin_hook(place.table, there.name);
  const char* fault = there.hook == meant ? nullptr
                      : !there.hook       ? "has no hook"
                                          : "has a different hook, type or priority than iptables expects";
  if (fault == nullptr) return;
  const std::string table = text(place.key());
  throw Error(ExitCode::failed, fmt::format("iptables-nft: the chain {} of the table {} {}", there.name, table, fault),
              fmt::format("see 'nft list chain {} {}'; delete it, or choose --backend nftables", table, there.name))
      .as_of_one_backend();
}

std::vector<ChainChange> changes_of(const Live& seen, const Ruleset& wanted, const IptablesTable& place,
                                    EqualRules equal, const MeshRules& mesh) {
  static const std::vector<LiveRule> none;
  std::vector<ChainChange> changes;
  const std::vector<Chain> asked = chains(wanted, place.table, place.family);
  for (const Chain& chain : asked) {
    const LiveChain* there = seen.find(place.family, place.table, chain.name);
    if (there != nullptr) require_called(place, *there);
    changes.push_back(
        {chain.name, there, splice(there != nullptr ? there->rules : none, chain.rules, mesh.came_by_insert, equal)});
  }
  for (const LiveChain& there : seen.chains) {
    if (there.families != place.family || there.table != place.table) continue;
    if (std::ranges::find(asked, there.name, &Chain::name) != asked.end()) continue;
    if (concerns_us(there)) {
      changes.push_back({there.name, &there, splice(there.rules, {}, mesh.came_by_insert), !has_only_ours(there)});
    }
  }
  std::erase_if(changes, &ChainChange::unchanged);
  return changes;
}

class Writer {
 public:
  Writer(Transaction& transaction, const IptablesTable& place, const Ruleset& wanted)
      : transaction_(transaction),
        place_(place),
        key_(place.key()),
        wanted_(chains(wanted, place.table, place.family)) {}

  // All chains first, then what goes, then what comes: no jump ever points to nowhere, and what is jumped to no more
  // can go.
  void write(const std::vector<ChainChange>& changes) {
    for (const ChainChange& change : changes) {
      if (change.there == nullptr) transaction_.add_chain(key_, change.name, builtin_hook(place_.table, change.name));
    }
    for (const ChainChange& change : changes) remove(change);
    for (const ChainChange& change : changes) add(change);
    for (const ChainChange& change : changes) {
      if (!change.wanted) transaction_.delete_chain(key_, change.name);
    }
  }

 private:
  void remove(const ChainChange& change) {
    if (change.there == nullptr) return;
    if (change.anew()) {
      if (!change.there->rules.empty()) transaction_.delete_rules(key_, change.name);
      return;
    }
    std::vector<bool> kept(change.there->rules.size());
    for (const Slot& slot : change.slots) {
      if (slot.kept) kept[*slot.kept] = true;
    }
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (!kept[i]) transaction_.delete_rule(key_, change.name, change.there->rules[i].handle);
    }
  }

  void add(const ChainChange& change) {
    if (change.anew()) {
      const auto chain = std::ranges::find(wanted_, change.name, &Chain::name);
      if (chain == wanted_.end()) return;
      for (const Rule* rule : chain->rules) add(*rule, {key_, change.name, 0});
      return;
    }
    for (std::size_t i = 0; i < change.slots.size(); ++i) {
      if (change.slots[i].fresh != nullptr) add(*change.slots[i].fresh, {key_, change.name, next_handle(change, i)});
    }
  }

  void add(const Rule& rule, const Transaction::Position& at) {
    const IptablesRule made = iptables_rule(rule, place_.family);
    transaction_.add_rule(at, made.expressions, {}, rule, made.compat);
  }

  // Of the first rule after that slot that is there already; 0 if there is none.
  static std::uint64_t next_handle(const ChainChange& change, std::size_t slot) {
    for (; slot < change.slots.size(); ++slot) {
      if (change.slots[slot].kept) return change.there->rules[*change.slots[slot].kept].handle;
    }
    return 0;
  }

  Transaction& transaction_;
  IptablesTable place_;
  TableKey key_;
  std::vector<Chain> wanted_;
};

// A rule that is several here (LiveRule) is none that we write: it is not deleted by halves, nor for one of them.
void keep_divided(LiveChain& chain) {
  if (chain.ours) return;
  for (std::size_t i = 1; i < chain.rules.size(); ++i) {
    if (chain.rules[i].handle == chain.rules[i - 1].handle) chain.rules[i].ours = chain.rules[i - 1].ours = false;
  }
}

}  // namespace

namespace nft {

bool is_of_iptables(const TableKey& table) { return iptables_table_of(table).has_value(); }

Live iptables_live(const Dump& seen, const KnownSets& sets, const MeshRules& mesh) {
  Live live{BackendKind::iptables_nft, {}, seen.generation, {}};
  Reading reading;
  std::vector<LiveChain> others;
  for (const KernelTable& table : seen.tables) {
    const auto place = iptables_table_of(table.key);
    if (!place) continue;
    live.tables.push_back(live_table(table));
    std::vector<LiveChain>& to = is_written(place->table) ? live.chains : others;
    for (const KernelChain& chain : table.chains) to.push_back(read_chain(table, chain, *place, reading));
  }
  std::ranges::move(others, std::back_inserter(live.chains));
  name_sets(live.chains, sets);
  mesh.mark_ours(mesh, live.chains);
  std::ranges::for_each(live.chains, keep_divided);
  std::size_t first = 0;
  for (const KernelTable& table : seen.tables) {
    const auto place = iptables_table_of(table.key);
    if (!place || !is_written(place->table)) continue;
    const std::span chains = std::span(live.chains).subspan(first, table.chains.size());
    // An empty one may be any program's.
    const bool goes = mesh.name.empty() || std::ranges::any_of(chains, concerns_us);
    if (goes && table_has_only_ours(table, chains)) live.own_tables.push_back(text(table.key));
    first += chains.size();
  }
  return live;
}

void change_iptables_nft(const Live& seen, const Ruleset& wanted, EqualRules equal, Transaction& transaction) {
  transaction.begin(BackendKind::iptables_nft);
  const auto change = [&](const IptablesTable& place) {
    const bool used = !chains(wanted, place.table, place.family).empty();
    if (!used && std::ranges::find(seen.own_tables, text(place.key())) != seen.own_tables.end())
      return transaction.delete_table(place.key());
    if (used) require_awake(place, seen);
    const std::vector<ChainChange> changes = changes_of(seen, wanted, place, equal, transaction.mesh());
    if (changes.empty()) return;
    transaction.add_table(place.key());
    Writer(transaction, place, wanted).write(changes);
  };
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    for (const Table table : changed_tables) change({family, table});
  }
}

}  // namespace nft
}  // namespace sidetrack
