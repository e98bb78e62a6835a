// SPDX-License-Identifier: GPL-2.0-or-later
// What `nsenter` does, for this process. The user namespace that owns the network namespace is entered first, if it is
// another one: the rights that count for a network namespace are those in its owner, and the kernel takes -m owner
// rules from there alone (owner_check() of xt_owner). Errors: usage if there is no such target or it is not a network
// namespace, with the reason; not_permitted naming the capability.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace sidetrack {

class Descriptor;

// A network namespace to work in, held open.
struct Place {
  std::string name;                        // "process 4711", "network namespace 'blue'"
  std::shared_ptr<const Descriptor> net;   // the namespace
  std::shared_ptr<const Descriptor> root;  // of a process: its root directory (O_PATH); else nothing
  std::string root_name;                   // "/proc/4711/root"
  bool ours = false;                       // it is the namespace that this process is in
};

// That of a process, with its root: all through one descriptor of /proc/PID, which stands for the process as a pidfd
// does: if it ends, nothing is found below, whichever process gets its number. Refuses threads of the kernel, which
// have no pod.
[[nodiscard]] Place place_of_process(std::uint32_t pid);

// Whether it is there and the file of a network namespace. Throws Error (failed, not_permitted) if that cannot be told.
[[nodiscard]] bool is_network_namespace(const std::string& path);

// By path (anything with a '/') or by the name that `ip netns` gave it: a file in /run/netns.
[[nodiscard]] Place place_of_netns(const std::string& path_or_name);

void enter(const Place& place);

}  // namespace sidetrack
