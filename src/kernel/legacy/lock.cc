// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/legacy/lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "kernel/inspect.h"
#include "kernel/lock.h"
#include "model/error.h"
#include "model/printable.h"
#include "system/file.h"

namespace sidetrack::legacy {
namespace {

std::string lock_path(const std::string& named) {
  if (!named.empty()) return named;
  const char* variable = std::getenv("XTABLES_LOCKFILE");
  return variable != nullptr && *variable != '\0' ? variable : "/run/xtables.lock";
}

// "a FIFO, not a regular file": no other program can be expected to lock it. Empty if all is well.
std::string other_than_a_file(int file) {
  struct stat status {};
  return fstat(file, &status) == 0 ? host::not_regular(status.st_mode) : "";
}

}  // namespace

XtablesLock::XtablesLock(const std::string& named, std::chrono::milliseconds wait) {
  const std::string path = lock_path(named);
  file_ = Descriptor(open(path.c_str(), O_CREAT | O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600));
  if (file_.valid()) {
    if (const std::string other = other_than_a_file(file_.get()); !other.empty()) {
      throw Error(ExitCode::usage, fmt::format("lock file {} is {}", printable(path), other),
                  "XTABLES_LOCKFILE must name a regular file, or one that can be made");
    }
    lock_file(file_.get(), printable(path), wait);
  } else if (errno == EROFS || errno == ENOENT || errno == EACCES) {
    warning_ = fmt::format("continuing without xtables.lock: {}: {}", path, errno_words(errno));
  } else {
    throw system_error(errno, "cannot open lock file " + printable(path));
  }
}

}  // namespace sidetrack::legacy

namespace sidetrack {

LockFile inspect_lock(const std::string& named) {
  LockFile lock{legacy::lock_path(named), "", ""};
  const Descriptor file(open(lock.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.valid()) {
    lock.problem = legacy::other_than_a_file(file.get());
    if (lock.problem.empty()) lock.holder = lock_holder(file.get());
  } else {
    // One that is not there is made when needed, if its folder can be written.
    const std::string folder = lock.path.substr(0, lock.path.rfind('/') + 1) + ".";
    if (errno != ENOENT || access(folder.c_str(), W_OK) != 0) lock.problem = errno_words(errno);
  }
  return lock;
}

}  // namespace sidetrack
