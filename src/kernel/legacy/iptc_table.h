// SPDX-License-Identifier: GPL-2.0-or-later
// One table of one family through libiptc: a snapshot, edited in memory, committed in one system call.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rule/live.h"

namespace sidetrack::legacy {

// One rule of a chain as it is to be: one that stands in the snapshot, or a new one (xt/entry.h).
struct EntrySlot {
  std::optional<std::size_t> kept;
  std::vector<std::byte> fresh;
};

// What becomes of a chain. `rules` is all of it afterwards; kept ones stay in their order.
struct ChainEdit {
  std::string chain;
  bool create = false;  // it is not there yet
  bool remove = false;  // it goes; nothing may jump to it any more
  std::vector<EntrySlot> rules;
};

class IptcTable {
 public:
  virtual ~IptcTable() = default;

  [[nodiscard]] virtual Family family() const = 0;
  [[nodiscard]] virtual Table table() const = 0;

  // The snapshot, rules decoded; nothing is marked as ours.
  [[nodiscard]] virtual std::vector<LiveChain> read() const = 0;

  // What leads from the state after `edits` back to this snapshot, counters included. To be asked before edit().
  [[nodiscard]] virtual std::vector<ChainEdit> inverse(const std::vector<ChainEdit>& edits) const = 0;

  // Changes the snapshot. Throws if libiptc refuses.
  virtual void edit(const std::vector<ChainEdit>& edits) = 0;

  // Hands it to the kernel. Returns the errno, 0 if it is done. EAGAIN: another program changed the table since the
  // snapshot. Untouched rules keep the counters that they have by now: a second call gives them back, and if it alone
  // fails, the table is the new one although an errno is returned.
  [[nodiscard]] virtual int commit() = 0;
};

// Takes the snapshot; creates the table in this namespace if there is none. Throws kernel_lacks, not_permitted.
[[nodiscard]] std::unique_ptr<IptcTable> open_table(Family family, Table table);

// The tables that exist in this namespace: by ip_tables_names and ip6_tables_names in /proc/net, which touch
// nothing. All of them, and those that have a place in the model. Throws not_permitted if there may be some, and they
// cannot be seen.
[[nodiscard]] std::vector<std::string> table_names(Family family);
[[nodiscard]] std::vector<Table> existing_tables(Family family);

// Whether it holds rules, whichever program wrote them. Only for tables that exist: others would be created.
[[nodiscard]] bool holds_rules(Family family, const std::string& table);

// "table nat (ipv4)"
[[nodiscard]] std::string place(Family family, Table table);

}  // namespace sidetrack::legacy
