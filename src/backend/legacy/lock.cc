// SPDX-License-Identifier: GPL-2.0-or-later
#include "backend/legacy/lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "host/descriptor.h"
#include "host/file.h"
#include "model/printable.h"
#include "sidetrack/doctor.h"
#include "sidetrack/error.h"

namespace sidetrack::legacy {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
File open_text(const std::string& path) { return {std::fopen(path.c_str(), "re"), std::fclose}; }

std::string program_of(long pid) {
  const File file = open_text(fmt::format("/proc/{}/comm", pid));
  char name[64] = "";
  if (!file || std::fgets(name, sizeof name, file.get()) == nullptr) return "";
  const std::string_view line(name);
  return printable(line.substr(0, line.find('\n')));
}

// "held by iptables (pid 4711)", of /proc/locks: "1: FLOCK  ADVISORY  WRITE 4711 00:19:1234 0 EOF". Empty if the
// holder is in another pid namespace, or the file system numbers its files otherwise there.
std::string holder(int file) {
  struct stat status {};
  const File locks = open_text("/proc/locks");
  if (!locks || fstat(file, &status) != 0) return "";
  char line[256];
  while (std::fgets(line, sizeof line, locks.get()) != nullptr) {
    long pid = 0;
    unsigned major_number = 0;
    unsigned minor_number = 0;
    unsigned long inode = 0;
    if (std::sscanf(line, "%*d: FLOCK %*s %*s %ld %x:%x:%lu", &pid, &major_number, &minor_number, &inode) != 4)
      continue;
    if (inode != status.st_ino || major_number != major(status.st_dev) || minor_number != minor(status.st_dev))
      continue;
    if (pid <= 0) return "";
    const std::string program = program_of(pid);
    return program.empty() ? fmt::format("held by process {}", pid) : fmt::format("held by {} (pid {})", program, pid);
  }
  return "";
}

std::string lock_path(const std::string& named) {
  if (!named.empty()) return named;
  const char* variable = std::getenv("XTABLES_LOCKFILE");
  return variable != nullptr && *variable != '\0' ? variable : "/run/xtables.lock";
}

// "a FIFO, not a regular file": nobody else can be expected to lock such a thing. Empty if all is well.
std::string other_than_a_file(int file) {
  struct stat status {};
  return fstat(file, &status) == 0 ? host::not_regular(status.st_mode) : "";
}

}  // namespace

XtablesLock::XtablesLock(const std::string& named, milliseconds wait) {
  const std::string path = lock_path(named);
  file_ = open(path.c_str(), O_CREAT | O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
  if (file_ < 0) {
    if (errno != EROFS && errno != ENOENT && errno != EACCES)
      throw system_error(errno, "cannot open lock file " + printable(path));
    warning_ = fmt::format("going on without the lock of legacy iptables: {}: {}", path, errno_words(errno));
    return;
  }
  if (const std::string other = other_than_a_file(file_); !other.empty()) {
    close(file_);
    throw Error(ExitCode::usage, fmt::format("lock file {} is {}", printable(path), other),
                "XTABLES_LOCKFILE must name a regular file, or one that can be made");
  }
  // As iptables does, ask again and again: flock(2) has no time-out, and a signal is not a library's to take.
  const auto deadline = steady_clock::now() + wait;
  while (flock(file_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    if (error == EINTR) continue;
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
    if (error == EWOULDBLOCK && left.count() > 0) {
      std::this_thread::sleep_for(std::min(left, milliseconds(10)));
      continue;
    }
    const std::string who = holder(file_);
    close(file_);
    if (error != EWOULDBLOCK) throw system_error(error, "cannot lock " + path);
    throw Error(ExitCode::busy,
                fmt::format("{} is still {} after {:.1f} s", path, who.empty() ? "held by another process" : who,
                            static_cast<double>(wait.count()) / 1000),
                "wait for it to end, or wait longer with --wait");
  }
}

XtablesLock::~XtablesLock() {
  if (file_ >= 0) close(file_);
}

}  // namespace sidetrack::legacy

namespace sidetrack {

LockFile look_at_lock(const std::string& named) {
  LockFile lock{legacy::lock_path(named), "", ""};
  const Descriptor file(open(lock.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.valid()) {
    lock.problem = legacy::other_than_a_file(file.get());
    if (lock.problem.empty()) lock.holder = legacy::holder(file.get());
  } else {
    // One that is not there is made when needed, if its folder can be written.
    const std::string folder = lock.path.substr(0, lock.path.rfind('/') + 1) + ".";
    if (errno != ENOENT || access(folder.c_str(), W_OK) != 0) lock.problem = errno_words(errno);
  }
  return lock;
}

}  // namespace sidetrack
