// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/legacy/lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "kernel/inspect.h"
#include "kernel/lock.h"
#include "model/error.h"
#include "model/printable.h"
#include "system/file.h"
#include "system/known_file.h"

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

XtablesLock::XtablesLock(std::shared_ptr<const OpenedLockFile> file, const Deadline& deadline)
    : file_(std::move(file)) {
  const auto& [path, opened, error] = *file_;
  if (opened.valid()) {
    if (const std::string other = other_than_a_file(opened.get()); !other.empty()) {
      throw Error(ExitCode::usage, fmt::format("lock file {} is {}", printable(path), other),
                  "XTABLES_LOCKFILE must name a regular file, or one that can be made");
    }
    lock_file(opened.get(), printable(path), deadline);
  } else if (error == EROFS || error == ENOENT || error == EACCES) {
    warning_ = fmt::format("continuing without xtables.lock: {}: {}", path, errno_words(error));
  } else {
    throw system_error(error, "cannot open lock file " + printable(path));
  }
}

XtablesLock::~XtablesLock() {
  if (file_->file.valid()) flock(file_->file.get(), LOCK_UN);
}

}  // namespace sidetrack::legacy

namespace sidetrack {

std::shared_ptr<const OpenedLockFile> open_lock_file(const std::string& named) {
  auto opened = std::make_shared<OpenedLockFile>();
  opened->path = legacy::lock_path(named);
  opened->file = Descriptor(open(opened->path.c_str(), O_CREAT | O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600));
  if (!opened->file.valid()) opened->error = errno;
  return opened;
}

LockFile inspect_lock(const std::string& named) {
  LockFile lock{legacy::lock_path(named), "", ""};
  const Descriptor file(open(lock.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.valid()) {
    lock.problem = legacy::other_than_a_file(file.get());
    if (lock.problem.empty()) lock.holder = lock_holder(file.get());
    // Without /proc it is asked by a lock that others can have, too, for a moment.
    if (lock.problem.empty() && lock.holder.empty() && read_known_file(KnownFile::locks).error != 0 &&
        flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      lock.holder = "held by another process";
  } else {
    // One that is not there is made when needed, if its folder can be written.
    const std::string folder = lock.path.substr(0, lock.path.rfind('/') + 1) + ".";
    if (errno != ENOENT || access(folder.c_str(), W_OK) != 0) lock.problem = errno_words(errno);
  }
  return lock;
}

}  // namespace sidetrack
