// SPDX-License-Identifier: GPL-2.0-or-later
// The backend iptables-legacy: the tables raw, mangle and nat, by libiptc.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernel/known_sets.h"
#include "kernel/legacy/iptc_table.h"
#include "kernel/legacy/lock.h"
#include "rule/live.h"
#include "rule/mesh_rules.h"
#include "rule/ruleset.h"

namespace sidetrack::legacy {

class Tables {
 public:
  struct Options {
    // With a file, the xtables lock is taken for as long as the tables live: waits until the deadline, then throws
    // busy, naming the holder if the kernel tells. Without one they are only to read.
    std::shared_ptr<const OpenedLockFile> lock{};
    Deadline deadline{std::chrono::seconds(30)};
    const KnownSets* sets = nullptr;  // names those that rules ask, and outlives the tables
  };
  // `mesh` outlives the tables.
  Tables(const MeshRules& mesh, const Options& options);

  // A sentence if the lock could not be taken: "continuing without …"; else empty.
  [[nodiscard]] std::string warning() const { return lock_ ? lock_->warning() : ""; }

  // Reads what the kernel holds. Creates no table.
  Live read();
  // Gets what the next read() decodes, for which no right is needed then.
  void fetch();
  // Does what Kernel::commit and Kernel::check say of one change.
  void replace(const Live& seen, const Ruleset& wanted, EqualRules equal);
  [[nodiscard]] std::vector<std::string> check(const Live& seen, const Ruleset& wanted) const;

 private:
  const MeshRules& mesh_;
  const KnownSets* sets_;
  std::optional<XtablesLock> lock_;
  std::vector<std::unique_ptr<IptcTable>> tables_;
  bool fetched_ = false;  // and not read yet
};

}  // namespace sidetrack::legacy
