// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/sockios.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "kernel/inspect.h"
#include "model/error.h"
#include "model/printable.h"
#include "model/scan.h"
#include "system/known_file.h"
#include "system/read_write.h"
#include "system/sandbox.h"

namespace sidetrack {
namespace {

using std::chrono::milliseconds;

std::string program_of(std::uint32_t pid) {
  return entered_sandbox() ? "" : printable(process_name(pid));  // it opens no file
}

}  // namespace

// Of /proc/locks: "1: FLOCK  ADVISORY  WRITE 4711 00:19:1234 0 EOF".
std::string lock_holder(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return "";
  const std::string file = fmt::format("{:02x}:{:02x}:{}", major(status.st_dev), minor(status.st_dev), status.st_ino);
  const KnownText locks = read_known_file(KnownFile::locks);
  for (const std::string_view line : split_lines(locks.text)) {
    const auto columns = split_words(line);
    if (columns.size() < 6 || columns[1] != "FLOCK" || columns[5] != file) continue;
    const auto pid = to_number<std::uint32_t>(columns[4]);  // -1: of a process that this one cannot see
    if (!pid || *pid == 0) return "";
    const std::string program = program_of(*pid);
    return program.empty() ? fmt::format("held by process {}", *pid)
                           : fmt::format("held by {} (pid {})", program, *pid);
  }
  return "";
}

void lock_file(int fd, const std::string& name, const Deadline& deadline) {
  // As iptables does, ask again and again: flock(2) has no time-out, and a signal is not a library's to take.
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    if (error == EINTR) continue;
    if (error != EWOULDBLOCK) throw system_error(error, "cannot lock " + name);
    const auto left = std::chrono::duration_cast<milliseconds>(deadline.until() - Deadline::Clock::now());
    if (left.count() > 0) {
      std::this_thread::sleep_for(std::min(left, milliseconds(10)));
      continue;
    }
    const std::string who = lock_holder(fd);
    throw Error(ExitCode::busy,
                fmt::format("{} is still {} after {:.1f} s", name, who.empty() ? "held by another process" : who,
                            static_cast<double>(deadline.wait().count()) / 1000),
                "wait for it to end, or wait longer with --wait");
  }
}

NamespaceLock::File NamespaceLock::open_file() {
  File opened{Descriptor(open(namespace_lock, O_RDONLY | O_CLOEXEC)), 0};
  if (opened.file.valid()) return opened;
  opened.error = errno;
  // Without /proc: SIOCGSKNS (Linux 4.10) opens the namespace of a socket, for those that have CAP_NET_ADMIN in it.
  const Descriptor any(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  opened.file = Descriptor(any.valid() ? ioctl(any.get(), SIOCGSKNS) : -1);
  return opened;
}

NamespaceLock::NamespaceLock(const Deadline& deadline) : file_(open_file()) { take(deadline); }

void NamespaceLock::release() {
  if (file_.file.valid()) flock(file_.file.get(), LOCK_UN);
}

void NamespaceLock::take(const Deadline& deadline) {
  int error = file_.error;
  if (file_.file.valid()) error = flock(file_.file.get(), LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  const bool is_free = error == 0;
  if (!file_.file.valid() || (!is_free && error != EWOULDBLOCK)) {
    // Kernels that only resemble Linux may have no such file, or no locks on it.
    warning_ =
        fmt::format("continuing without the lock of the network namespace: {}: {}", namespace_lock, errno_words(error));
    return;
  }
  if (!is_free) lock_file(file_.file.get(), "the lock of the network namespace", deadline);
  warning_ = is_confirmation_open() ? "another 'apply --confirm' is waiting for confirmation here: unless it is "
                                      "confirmed, it restores what was there before, and undoes later changes"
                                    : "";
}

// A lock of F_OFD_SETLK goes with the descriptor, and so with the process. Of one that is opened to read it can only be
// shared; the file itself is locked meanwhile, so no two ask at once.
void NamespaceLock::begin_confirmation() {
  if (is_confirmation_open()) {
    throw Error(ExitCode::busy, "another 'apply --confirm' is waiting for confirmation here; nothing was changed",
                "confirm that one, or let it roll back, then run this one again");
  }
  struct flock shared {};
  shared.l_type = F_RDLCK;
  if (file_.file.valid()) static_cast<void>(fcntl(file_.file.get(), F_OFD_SETLK, &shared));
}

bool NamespaceLock::is_confirmation_open() const {
  struct flock any {};
  any.l_type = F_WRLCK;
  return file_.file.valid() && fcntl(file_.file.get(), F_OFD_GETLK, &any) == 0 && any.l_type != F_UNLCK;
}

}  // namespace sidetrack
