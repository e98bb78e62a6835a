// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/read_write.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "system/descriptor.h"

namespace sidetrack {

int read_all(int file, std::size_t most, std::string& text) {
  constexpr std::size_t piece = 1U << 12;  // most files of /proc are smaller
  std::size_t size = 0;
  while (true) {
    if (size == text.size()) text.resize(size + std::max(piece, size));
    const ssize_t got = read(file, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
    if (size > most) return EFBIG;
  }
  text.resize(size);
  return 0;
}

int read_named(const std::string& path, std::size_t most, std::string& text) {
  if (path == "-") return read_all(STDIN_FILENO, most, text);
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file.valid() ? read_all(file.get(), most, text) : errno;
}

std::string read_small(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  return file.valid() && read_all(file.get(), 1U << 12, text) == 0 ? text : "";
}

std::string process_name(std::uint32_t pid) {
  const std::string line = read_small(fmt::format("/proc/{}/comm", pid));
  return line.substr(0, line.rfind('\n'));
}

int write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace sidetrack
