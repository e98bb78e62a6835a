// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/replace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "model/error.h"
#include "model/printable.h"
#include "system/descriptor.h"
#include "system/file.h"
#include "system/read_write.h"

namespace sidetrack {
namespace {

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

// A file that nobody else can reach by another name.
bool is_plain(const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_nlink == 1 && status.st_uid == geteuid();
}

// The temporary file, locked: what another process left of it is ours to write over, but not while that one writes.
// Returns an invalid descriptor with errno set.
Descriptor open_locked(const std::string& name) {
  constexpr int most_attempts = 1000;
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    Descriptor file(open(name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
    if (!file.valid() && errno != ELOOP && errno != ENXIO) return file;
    struct stat mine {};
    const bool usable = file.valid() && fstat(file.get(), &mine) == 0 && is_plain(mine);
    if (!usable) {
      if (unlink(name.c_str()) != 0 && errno != ENOENT) return Descriptor();
      continue;
    }
    while (flock(file.get(), LOCK_EX) != 0) {
      if (errno != EINTR) return Descriptor();
    }
    // The one who had the lock has renamed it.
    struct stat there {};
    if (stat(name.c_str(), &there) == 0 && there.st_dev == mine.st_dev && there.st_ino == mine.st_ino) return file;
  }
  errno = EBUSY;
  return Descriptor();
}

}  // namespace

std::string temporary_name(const std::string& path) {
  return fmt::format("{}.{}.sidetrack-new", folder_of(path), path.substr(path.rfind('/') + 1));
}

void flush_folder_of(const std::string& path) {
  const std::string name = folder_of(path);
  const Descriptor folder(open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid() || fsync(folder.get()) != 0)
    throw system_error(errno, fmt::format("cannot flush the directory '{}'", excerpt(name)));
}

std::optional<FileVersion> file_version(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return std::nullopt;
  return FileVersion{status.st_dev, status.st_ino, status.st_ctim.tv_sec, status.st_ctim.tv_nsec, status.st_mode};
}

void replace_file(const std::string& path, std::string_view content, const Replacement& how) {
  const auto there = file_version(path);
  const bool is_link = there && S_ISLNK(there->mode);
  if (there && !S_ISREG(there->mode) && !(is_link && how.links)) {
    throw Error(ExitCode::usage,
                fmt::format("'{}' is {}: expected a file, or none", excerpt(path),
                            is_link                ? "a symbolic link"
                            : S_ISDIR(there->mode) ? "a directory"
                                                   : host::not_regular(there->mode)),
                "it is not replaced: name another file");
  }
  const std::string temporary = temporary_name(path);
  const Descriptor file = open_locked(temporary);
  bool done = file.valid() && ftruncate(file.get(), 0) == 0 && (errno = write_all(file.get(), content)) == 0 &&
              fchmod(file.get(), how.mode) == 0 && fsync(file.get()) == 0;
  const bool changed = done && how.instead_of && file_version(path) != how.instead_of;
  done = done && !changed && rename(temporary.c_str(), path.c_str()) == 0;
  if (!done) {
    const int error = errno;
    if (file.valid()) unlink(temporary.c_str());
    if (changed) {
      throw Error(ExitCode::busy, fmt::format("'{}' was changed by another program meanwhile", excerpt(path)),
                  "run it again");
    }
    throw system_error(error, fmt::format("cannot write '{}'", excerpt(path)), ExitCode::failed, how.hint);
  }
  flush_folder_of(path);
}

}  // namespace sidetrack
