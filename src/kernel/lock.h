// SPDX-License-Identifier: GPL-2.0-or-later
// flock(2) with a timeout.
#pragma once

#include <memory>
#include <string>

#include "kernel/deadline.h"
#include "system/descriptor.h"

namespace sidetrack {

// Takes the lock of the open file `fd`; `name` is what errors call it by. Waits as long as
// the deadline lasts, then throws busy, naming the holder if the kernel tells.
void lock_file(int fd, const std::string& name, const Deadline& deadline);

// "held by iptables (pid 4711)". Empty if no process holds it, or the holder is in another pid namespace, or the file
// system numbers its files otherwise there.
[[nodiscard]] std::string lock_holder(int fd);

// The lock of the network namespace of the calling thread, which all writers of Sidetrack take. Released with the
// object.
class NamespaceLock {
 public:
  explicit NamespaceLock(const Deadline& deadline);
  [[nodiscard]] const std::string& warning() const { return warning_; }  // empty: there is none

  void release();
  void take(const Deadline& deadline);  // again

  // See Kernel::begin_confirmation. By a lock of another kind on the same file, which others can see and hold, too.
  void begin_confirmation();

 private:
  [[nodiscard]] bool is_confirmation_open() const;  // another one's

  struct File {
    Descriptor file;
    int error = 0;  // why there is none
  };
  static File open_file();

  File file_;
  std::string warning_;
};

// The file of the xtables lock, opened and not yet locked: $XTABLES_LOCKFILE or /run/xtables.lock, which is made if it
// is not there. `named`: another file. For another pod's namespace that is the namespace itself, namespace_lock: the
// lock file of the node has nothing to do with it, and waiting for it has blocked pods for hours.
struct OpenedLockFile {
  std::string path{};
  Descriptor file{};
  int error = 0;  // an errno, if it could not be opened
};
[[nodiscard]] std::shared_ptr<const OpenedLockFile> open_lock_file(const std::string& named = "");

}  // namespace sidetrack
