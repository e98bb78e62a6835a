// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <memory>
#include <string>

#include "kernel/deadline.h"
#include "kernel/lock.h"

namespace sidetrack::legacy {

// The lock that all programs of legacy iptables take: flock(2) on $XTABLES_LOCKFILE or /run/xtables.lock. libiptc takes
// none. Released with the object.
class XtablesLock {
 public:
  // Waits until the deadline, then throws busy, naming the holder if the kernel tells. Where the file cannot
  // be made (no /run, a read-only file system) it goes on without a lock and says so in warning().
  XtablesLock(std::shared_ptr<const OpenedLockFile> file, const Deadline& deadline);
  ~XtablesLock();
  XtablesLock(const XtablesLock&) = delete;
  XtablesLock& operator=(const XtablesLock&) = delete;

  [[nodiscard]] const std::string& warning() const { return warning_; }  // empty if the lock is held

 private:
  std::shared_ptr<const OpenedLockFile> file_;
  std::string warning_;
};

}  // namespace sidetrack::legacy
