// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <utility>

#include "model/error.h"
#include "model/scan.h"
#include "system/read_write.h"
#include "system/signals.h"
#include "system/worker.h"

namespace sidetrack::host {
namespace {

constexpr std::chrono::milliseconds patience(5000);

int open_below(int root, const std::string& path, int flags) {
  if (root < 0) {
    int fd = -1;
    do fd = open(path.c_str(), flags | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    return fd;
  }
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  while (true) {
    const auto fd = static_cast<int>(syscall(SYS_openat2, root, path.c_str(), &how, sizeof how));
    // EAGAIN: something was renamed meanwhile, and whether ".." left the root could not be told.
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) return fd;
  }
}

OpenedFile failed(int error) { return {Descriptor(), error, errno_words(error), {}}; }

// Of a mode that is not a regular file's.
std::string_view type_of(unsigned mode) {
  switch (mode & S_IFMT) {
    case S_IFIFO:
      return "a FIFO";
    case S_IFCHR:
    case S_IFBLK:
      return "a device";
    case S_IFSOCK:
      return "a socket";
    case S_IFDIR:
      return "a directory";
    default:
      return "a special file";
  }
}

FileText read_whole(int root, const std::string& path) {
  const OpenedFile opened = open_regular(root, path);
  if (!opened.file.valid()) return {{}, opened.error, opened.problem};
  std::string text;
  const int error = read_all(opened.file.get(), largest_file, text);
  if (error == EFBIG) return {{}, error, fmt::format("larger than {} KiB", largest_file >> 10)};
  if (error != 0) return {{}, error, errno_words(error)};
  return {std::move(text), 0, {}};
}

// With a time limit: in a child, since a process that waits for a file system cannot be woken, only left behind.
FileText read_in_time(int root, const std::string& path) {
  const auto task = [&] {
    const FileText read = read_whole(root, path);
    return fmt::format("{}\n{}", read.error, read.text ? *read.text : read.problem);
  };
  WorkerResult result;
  try {
    const HeldSignals held(HeldSignals::Which::all);  // the child runs no handler that the program has
    result = run_in_children({task}, patience, root).front();
  } catch (const Error& error) {
    return {{}, EAGAIN, error.what()};
  }
  if (result.timed_out) return {{}, ETIMEDOUT, fmt::format("no answer within {} s", patience.count() / 1000)};
  const std::size_t end = std::min(result.answer.find('\n'), result.answer.size());
  const auto error = to_number<int>(std::string_view(result.answer).substr(0, end));
  if (!error || result.signal != 0) return {{}, EIO, errno_words(EIO)};  // it is cut
  std::string words = result.answer.substr(end + 1);
  if (*error == 0) return {std::move(words), 0, {}};
  return {{}, *error, std::move(words)};
}

}  // namespace

std::string not_regular(unsigned mode) {
  if (S_ISREG(mode)) return "";
  return S_ISDIR(mode) ? errno_words(EISDIR) : fmt::format("{}, not a regular file", type_of(mode));
}

// Twice: to open a device or a FIFO is to do something with it, but with O_PATH. Should another file come to stand
// there in between, it does not block, and is looked at again.
OpenedFile open_regular(int root, const std::string& path) {
  const Descriptor found(open_below(root, path, O_PATH));
  if (!found.valid()) return failed(errno);
  Descriptor file;
  for (const bool opened : {false, true}) {
    if (opened) file = Descriptor(open_below(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
    if (opened && !file.valid()) return failed(errno);
    struct stat status {};
    if (fstat((opened ? file : found).get(), &status) != 0) return failed(errno);
    if (S_ISREG(status.st_mode)) continue;
    const int error = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
    return {Descriptor(), error, not_regular(status.st_mode), type_of(status.st_mode)};
  }
  return {std::move(file), 0, {}, {}};
}

FileText read_file(int root, const std::string& path) {
  return root < 0 ? read_whole(root, path) : read_in_time(root, path);
}

}  // namespace sidetrack::host
