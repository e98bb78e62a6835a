// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "model/error.h"
#include "system/child.h"
#include "system/read_write.h"
#include "system/signals.h"

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

// ---- With a time limit: in a child, since a process that waits for a file system cannot be woken, only left behind.

// What the child says: this, then the text, or the problem.
struct Head {
  std::int32_t error;  // an errno; 0: the text follows
  std::uint32_t size;  // of what follows, in bytes
};
constexpr std::size_t longest_answer = sizeof(Head) + largest_file;

// Should the child be left behind, no process must wait for the other end of its pipes, or for a lock.
void close_all_but(int a, int b) {
  const auto low = static_cast<unsigned>(std::min(a, b));
  const auto high = static_cast<unsigned>(std::max(a, b));
  if (low > 0) close_range(0, low - 1, 0);
  if (high - low > 1) close_range(low + 1, high - 1, 0);
  close_range(high + 1, ~0U, 0);
}

[[noreturn]] void answer(int to, int root, const std::string& path) {
  close_all_but(to, root);
  try {
    const FileText read = read_whole(root, path);
    const std::string& words = read.text ? *read.text : read.problem;
    const Head head{read.text ? 0 : read.error, static_cast<std::uint32_t>(words.size())};
    write_all(to, {reinterpret_cast<const char*>(&head), sizeof head});
    write_all(to, words);
  } catch (...) {  // no memory: the answer is cut
  }
  _exit(0);
}

// All of it, cut if it is longer than any; nothing once the time is over.
std::optional<std::string> read_answer(int from, std::chrono::steady_clock::time_point deadline) {
  using namespace std::chrono;
  std::string answer;
  while (true) {
    const auto left = duration_cast<milliseconds>(deadline - steady_clock::now());
    pollfd ready{from, POLLIN, 0};
    const int count = poll(&ready, 1, std::max(0, static_cast<int>(left.count())));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    char buffer[1 << 14];
    const ssize_t got = read(from, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || answer.size() > longest_answer) return answer;
    answer.append(buffer, static_cast<std::size_t>(got));
  }
}

// Starts the child, which runs no handler of signals that the program has.
pid_t start(int to, int root, const std::string& path) {
  const HeldSignals held(HeldSignals::Which::all);
  const pid_t pid = fork();
  if (pid == 0) answer(to, root, path);
  return pid;
}

// Understands an answer that is whole.
FileText understood(std::string_view said) {
  Head head{EIO, 0};
  if (said.size() >= sizeof head) std::memcpy(&head, said.data(), sizeof head);
  if (said.size() != sizeof head + head.size) return {{}, EIO, errno_words(EIO)};
  std::string words(said.substr(sizeof head));
  if (head.error == 0) return {std::move(words), 0, {}};
  return {{}, head.error, std::move(words)};
}

FileText read_in_time(int root, const std::string& path) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {{}, errno, errno_words(errno)};
  const Descriptor from(ends[0]);
  Descriptor to(ends[1]);
  const pid_t pid = start(to.get(), root, path);
  if (pid < 0) return {{}, errno, errno_words(errno)};
  Child child(pid);
  to = Descriptor();
  const auto deadline = Child::Clock::now() + patience;
  const auto said = read_answer(from.get(), deadline);
  if (!said) return {{}, ETIMEDOUT, fmt::format("no answer within {} s", patience.count() / 1000)};
  static_cast<void>(child.wait(deadline));
  return understood(*said);
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
