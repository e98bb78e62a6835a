// SPDX-License-Identifier: GPL-2.0-or-later
// To be preloaded: the kernel then lacks the extensions and expressions that $WITHOUT names, "owner,redir". In what the
// program sends, their names become ones that no kernel knows: the answer is the kernel's own.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

// In an xt_entry_match as in a netlink attribute a name ends with a zero and stands after one, but for the name that
// is asked about by IPT_SO_GET_REVISION_*, which stands first.
void rename_in(std::string& bytes, std::string_view name) {
  const std::string ended = std::string(name) + '\0';
  for (std::size_t at = bytes.find(ended); at != std::string::npos; at = bytes.find(ended, at + 1)) {
    if (at == 0 || bytes[at - 1] == '\0') bytes[at + name.size() - 1] = '~';
  }
}

std::string renamed(const void* data, std::size_t size) {
  std::string bytes(static_cast<const char*>(data), size);
  const char* without = std::getenv("WITHOUT");
  std::string_view names = without != nullptr ? without : "";
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(','), names.size());
    rename_in(bytes, names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return bytes;
}

}  // namespace

extern "C" {

ssize_t sendto(int fd, const void* data, size_t size, int flags, const sockaddr* to, socklen_t length) {
  const std::string bytes = renamed(data, size);
  return syscall(SYS_sendto, fd, bytes.data(), bytes.size(), flags, to, length);
}

ssize_t send(int fd, const void* data, size_t size, int flags) { return sendto(fd, data, size, flags, nullptr, 0); }

int setsockopt(int fd, int level, int option, const void* value, socklen_t size) noexcept {
  const std::string bytes = renamed(value, size);
  return static_cast<int>(syscall(SYS_setsockopt, fd, level, option, bytes.data(), size));
}

int getsockopt(int fd, int level, int option, void* value, socklen_t* size) noexcept {
  const std::string bytes = renamed(value, *size);
  bytes.copy(static_cast<char*>(value), bytes.size());
  return static_cast<int>(syscall(SYS_getsockopt, fd, level, option, value, size));
}

}  // extern "C"
