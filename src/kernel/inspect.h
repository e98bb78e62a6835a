// SPDX-License-Identifier: GPL-2.0-or-later
// What can be seen of the kernel's tables and locks without changing any.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sidetrack {

// The network namespace of the calling thread, by whose lock all writers of Sidetrack wait for each other.
inline constexpr const char* namespace_lock = "/proc/thread-self/ns/net";

// The lock of legacy iptables. It is not taken: a program that does not wait for it would fail for us.
struct LockFile {
  std::string path;
  std::string holder;   // "held by iptables (pid 4711)"; empty if /proc/locks shows none
  std::string problem;  // why there can be no lock; empty if it is there or can be made
};
// `named` as for open_lock_file().
[[nodiscard]] LockFile inspect_lock(const std::string& named);

// The tables in this namespace, whichever program made them; nothing if we may not see. Those of legacy iptables that
// exist: "nat (ipv4)"; those of nf_tables: "ip nat", "inet filter".
using TableNames = std::optional<std::vector<std::string>>;
[[nodiscard]] TableNames legacy_tables();
[[nodiscard]] TableNames nf_tables();

// Whether any table of legacy iptables holds rules in this namespace, whichever program wrote them. Creates none.
[[nodiscard]] bool iptables_legacy_in_use();

}  // namespace sidetrack
