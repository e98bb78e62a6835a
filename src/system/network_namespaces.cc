// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/network_namespaces.h"

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "model/error.h"
#include "model/printable.h"
#include "model/scan.h"
#include "system/descriptor.h"
#include "system/folder.h"
#include "system/read_write.h"

namespace sidetrack {
namespace {

std::vector<std::uint32_t> processes() {
  const auto entries = entries_of("/proc");
  if (!entries) throw system_error(errno, "cannot read /proc", ExitCode::failed, "/proc must be mounted");
  // Each PID namespace has a process 1. Without rights over others' processes hidepid leaves them out of the list.
  if (std::ranges::find(*entries, "1", &FolderEntry::name) == entries->end()) {
    throw Error(ExitCode::failed, "/proc does not list process 1: which pods there are is not known",
                "mount it (mount -t proc proc /proc), without hidepid, or run as root");
  }
  std::vector<std::uint32_t> all;
  for (const auto& [name, is_folder] : *entries) {
    if (const auto pid = to_number<std::uint32_t>(name)) all.push_back(*pid);
  }
  std::ranges::sort(all);
  return all;
}

}  // namespace

std::optional<NamespaceId> namespace_at(const std::string& path) {
  struct statfs system {};
  struct stat status {};
  if (statfs(path.c_str(), &system) != 0 || stat(path.c_str(), &status) != 0) return std::nullopt;
  if (system.f_type == NSFS_MAGIC) return NamespaceId{status.st_dev, status.st_ino};
  errno = ENOTTY;
  return std::nullopt;
}

std::string own_network_namespace() {
  const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  std::uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (socket.valid() && getsockopt(socket.get(), SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) == 0)
    return fmt::format("cookie:{}", cookie);
  if (errno != ENOPROTOOPT) throw system_error(errno, "cannot tell which network namespace this is");
  const auto id = namespace_at("/proc/thread-self/ns/net");
  if (!id)
    throw system_error(errno, "cannot tell which network namespace this is", ExitCode::failed, "/proc must be mounted");
  return fmt::format("inode:{}:{}", id->device, id->inode);
}

std::vector<ProcessesOfNamespace> network_namespaces(std::vector<std::string>& problems) {
  std::set<NamespaceId> seen;
  for (const char* own : {"/proc/thread-self/ns/net", "/proc/1/ns/net"}) {
    if (const auto id = namespace_at(own)) seen.insert(*id);
  }
  std::vector<ProcessesOfNamespace> all;
  std::string forbidden;
  int why = 0;  // of the last one
  for (const std::uint32_t pid : processes()) {
    struct stat status {};
    if (stat(fmt::format("/proc/{}/ns/net", pid).c_str(), &status) != 0) {
      if (errno == ENOENT || errno == ESRCH) continue;  // it has ended
      why = errno;
      forbidden += fmt::format("{}{} ({})", forbidden.empty() ? "" : ", ", pid, process_name(pid));
      continue;
    }
    const NamespaceId id{status.st_dev, status.st_ino};
    if (seen.insert(id).second) all.push_back({id, pid, process_name(pid)});
  }
  if (!forbidden.empty()) {
    problems.push_back(
        fmt::format("the network namespaces of these processes cannot be looked at: {}: {}; it takes "
                    "CAP_SYS_PTRACE: run as root on the node",
                    excerpt(forbidden), errno_words(why)));
  }
  return all;
}

}  // namespace sidetrack
