// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/legacy/legacy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "kernel/legacy/refusal.h"
#include "model/error.h"
#include "rule/ours.h"
#include "rule/splice.h"
#include "rule/xt/entry.h"

namespace sidetrack::legacy {
namespace {

using TablePointer = std::unique_ptr<IptcTable>;

bool same_rules(const LiveChain* a, const LiveChain& b) {
  if (a == nullptr) return b.rules.empty() && is_builtin(b.name);
  return std::ranges::equal(a->rules, b.rules, {}, &LiveRule::rule, &LiveRule::rule);
}

// Whether the table holds what was `seen`, counters apart. A table that was not alive is one without rules.
bool is_as_seen(const IptcTable& table, const Live& seen) {
  const std::vector<LiveChain> chains = table.read();
  const auto of_table = [&](const LiveChain& chain) {
    return chain.families == table.family() && chain.table == table.table();
  };
  const auto gone = [&](const LiveChain& before) {
    return of_table(before) && std::ranges::find(chains, before.name, &LiveChain::name) == chains.end();
  };
  return std::ranges::none_of(seen.chains, gone) && std::ranges::all_of(chains, [&](const LiveChain& chain) {
           return same_rules(seen.find(table.family(), table.table(), chain.name), chain);
         });
}

ChainEdit edit_of(const std::string& name, const LiveChain* there, std::span<const Rule* const> wanted, Family family,
                  const MeshRules& mesh, EqualRules equal) {
  static const std::vector<LiveRule> none;
  ChainEdit edit{name, there == nullptr && !is_builtin(name), false, {}};
  for (const Slot& slot : splice(there != nullptr ? there->rules : none, wanted, mesh.came_by_insert, equal)) {
    edit.rules.push_back({slot.kept, slot.kept ? std::vector<std::byte>{} : xt::encode_entry(*slot.fresh, family)});
  }
  return edit;
}

bool changes(const ChainEdit& edit, const LiveChain* there) {
  const std::size_t count = there != nullptr ? there->rules.size() : 0;
  return edit.create || edit.remove || edit.rules.size() != count ||
         std::ranges::any_of(edit.rules, [](const EntrySlot& slot) { return !slot.kept; });
}

// What makes one table of one family hold `wanted` in the place of all that is ours; empty if it does already.
std::vector<ChainEdit> edits_of(const Live& seen, const Ruleset& wanted, Family family, Table table,
                                const MeshRules& mesh, EqualRules equal = EqualRules::keep) {
  std::vector<ChainEdit> edits;
  const auto add = [&](ChainEdit edit, const LiveChain* there) {
    if (changes(edit, there)) edits.push_back(std::move(edit));
  };
  const std::vector<Chain> asked = chains(wanted, table, family);
  for (const Chain& chain : asked) {
    const LiveChain* there = seen.find(family, table, chain.name);
    add(edit_of(chain.name, there, chain.rules, family, mesh, equal), there);
  }
  for (const LiveChain& there : seen.chains) {
    if (there.families != family || there.table != table || !concerns_us(there)) continue;
    if (std::ranges::find(asked, there.name, &Chain::name) != asked.end()) continue;
    ChainEdit edit = edit_of(there.name, &there, {}, family, mesh, equal);
    edit.remove = is_wholly_ours(there);
    add(std::move(edit), &there);
  }
  return edits;
}

// The order in which tables are committed, so that between two commits no traffic escapes and none is lost:
//   - mangle before nat if TPROXY is asked for, else after it: what takes the inbound traffic from now on is there
//     before the other goes. Where both take it for a moment, it lands on the proxy either way.
//   - raw before nat if it is to hold rules, else after it: a DNS query that nat redirects must have been given its
//     conntrack zone, or its answer finds no way back.
std::vector<Table> commit_order(const Ruleset& wanted) {
  const auto any = [&](auto predicate) { return std::ranges::any_of(wanted.rules, predicate); };
  std::vector<Table> order{Table::nat};
  const auto place = [&](Table table, bool first) { order.insert(first ? order.begin() : order.end(), table); };
  place(Table::mangle, any([](const Rule& rule) { return std::holds_alternative<Tproxy>(rule.target); }));
  place(Table::raw, any([](const Rule& rule) { return rule.table == Table::raw; }));
  place(Table::filter, false);
  return order;
}

struct PlannedTable {
  IptcTable* table;
  std::vector<ChainEdit> back;
};

// Puts a table back, unless it is as it was seen: the commit that failed may have replaced it all the same. Returns
// what it could not do; empty: nothing.
std::string put_back(const PlannedTable& planned, const Live& seen) {
  const Family family = planned.table->family();
  const Table table = planned.table->table();
  const auto open = [&] { return open_table(family, table); };
  try {
    const TablePointer now = open();
    if (is_as_seen(*now, seen)) return "";
    now->edit(planned.back);
    const int error = now->commit();
    if (error == 0 || is_as_seen(*open(), seen)) return "";
    return errno_words(error);
  } catch (const Error& error) {
    return error.what();
  }
}

// Puts tables back. Returns what it could not put back, to be said beside the first error.
std::string roll_back(std::span<const PlannedTable> committed, const Live& seen) {
  std::string failures;
  for (auto planned = committed.rbegin(); planned != committed.rend(); ++planned) {
    const std::string failure = put_back(*planned, seen);
    if (failure.empty()) continue;
    failures += fmt::format("; {} holds the new rules and could not be put back: {}",
                            place(planned->table->family(), planned->table->table()), failure);
  }
  return failures;
}

// A table is created when it is opened, and stays. So what the kernel certainly lacks is met before.
void require_before_opening(const Ruleset& wanted, const MeshRules& mesh) {
  for (Family family : {Family::ipv4, Family::ipv6}) {
    const std::vector<Table> alive = existing_tables(family);
    const bool opens = std::ranges::any_of(wanted.rules, [&](const Rule& rule) {
      return rule.families.contains(family) && std::ranges::find(alive, rule.table) == alive.end();
    });
    if (opens) require_extensions(family, wanted, mesh);
  }
}

}  // namespace

Tables::Tables(const MeshRules& mesh, const Options& options) : mesh_(mesh), sets_(options.sets) {
  if (options.lock) lock_.emplace(options.lock, options.deadline);
}

void Tables::fetch() {
  tables_.clear();
  for (Family family : {Family::ipv4, Family::ipv6}) {
    for (Table table : existing_tables(family)) tables_.push_back(open_table(family, table));
  }
  fetched_ = true;
}

Live Tables::read() {
  if (!fetched_) fetch();
  fetched_ = false;
  Live live;
  live.backend = BackendKind::iptables_legacy;
  std::vector<LiveChain> others;
  for (const TablePointer& table : tables_)
    std::ranges::move(table->read(), std::back_inserter(is_written(table->table()) ? live.chains : others));
  // Nothing changes security: its snapshot is not kept.
  std::erase_if(tables_, [](const TablePointer& table) {
    return std::ranges::find(changed_tables, table->table()) == std::end(changed_tables);
  });
  std::ranges::move(others, std::back_inserter(live.chains));
  if (sets_ != nullptr) name_sets(live.chains, *sets_);
  mesh_.mark_ours(mesh_, live.chains);
  return live;
}

void Tables::replace(const Live& seen, const Ruleset& wanted, EqualRules equal) {
  require_before_opening(wanted, mesh_);
  // The snapshots of read() are used up. The commit of one fails if the table has another number of rules by now.
  std::vector<TablePointer> tables = std::move(tables_);
  tables_.clear();
  const auto snapshot = [&](Family family, Table table) -> IptcTable& {
    for (const TablePointer& open : tables) {
      if (open->family() == family && open->table() == table) return *open;
    }
    IptcTable& opened = *tables.emplace_back(open_table(family, table));
    if (!is_as_seen(opened, seen)) throw refused(EAGAIN, family, table, wanted, mesh_);
    return opened;
  };

  struct Change {
    Family family;
    Table table;
    std::vector<ChainEdit> edits;
  };
  std::vector<Change> changes;
  for (Table table : commit_order(wanted)) {
    for (Family family : {Family::ipv4, Family::ipv6}) {
      std::vector<ChainEdit> edits = edits_of(seen, wanted, family, table, mesh_, equal);
      if (!edits.empty()) changes.push_back({family, table, std::move(edits)});
    }
  }
  // A table is created when it is opened, and stays. Of them kernels lack nat most often.
  for (const Change& change : changes) {
    if (change.table == Table::nat) static_cast<void>(snapshot(change.family, change.table));
  }
  // Everything of every table is edited before the first commit.
  std::vector<PlannedTable> planned;
  for (const auto& [family, table, edits] : changes) {
    IptcTable& open = snapshot(family, table);
    planned.push_back({&open, open.inverse(edits)});
    open.edit(edits);
  }
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const int error = planned[i].table->commit();
    if (error == 0) continue;
    const Error first = refused(error, planned[i].table->family(), planned[i].table->table(), wanted, mesh_);
    const std::string failures = roll_back(std::span(planned).first(i + 1), seen);
    if (failures.empty()) throw first;
    throw Error(first.code() == ExitCode::busy ? ExitCode::failed : first.code(), first.what() + failures,
                first.hint());
  }
}

std::vector<std::string> Tables::check(const Live& seen, const Ruleset& wanted) const {
  require_capabilities();
  std::vector<std::string> unchecked;
  for (Family family : {Family::ipv4, Family::ipv6}) {
    const std::vector<Table> alive = existing_tables(family);
    bool any = false;
    std::vector<std::string_view> unseen;
    for (Table table : changed_tables) {
      if (edits_of(seen, wanted, family, table, mesh_).empty()) continue;
      any = true;
      if (std::ranges::find(alive, table) == alive.end()) unseen.push_back(name(table));
    }
    if (!unseen.empty()) {
      unchecked.push_back(fmt::format("iptables-legacy: whether the kernel has {} ({}): asking for a table creates it",
                                      fmt::join(unseen, ", "), name(family)));
    }
    if (any && !wanted.rules.empty()) require_extensions(family, wanted, mesh_);
  }
  unchecked.emplace_back(
      "iptables-legacy: whether the kernel accepts each rule in its place: only a commit shows that");
  return unchecked;
}

}  // namespace sidetrack::legacy
