// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sidetrack {

// A namespace by its file of the kernel's: the same for every way that leads to it.
struct NamespaceId {
  dev_t device = 0;
  ino_t inode = 0;
  friend auto operator<=>(const NamespaceId&, const NamespaceId&) = default;
};

// Nothing, with errno set, if the path leads to no file; nothing and ENOTTY if to one that is no namespace, as the file
// to which one was bound that is gone.
[[nodiscard]] std::optional<NamespaceId> namespace_at(const std::string& path);

// What tells the caller's network namespace from every other one as long as the kernel runs: the cookie that it gave
// it, "cookie:4711" (SO_NETNS_COOKIE, Linux 5.14); before that "inode:4:4026531840", which a later one may have again.
// Throws Error (failed).
[[nodiscard]] std::string own_network_namespace();

// A network namespace that processes are in.
struct ProcessesOfNamespace {
  NamespaceId id;
  std::uint32_t pid = 0;  // the lowest
  std::string process;    // its name, as it calls itself
};

// All that processes of this /proc are in, by pid, but for the caller's own and that of process 1, the machine's. Adds
// a sentence to `problems` for what cannot be looked at. Throws Error (failed) without /proc, or where it
// does not list the processes of others (hidepid).
[[nodiscard]] std::vector<ProcessesOfNamespace> network_namespaces(std::vector<std::string>& problems);

}  // namespace sidetrack
