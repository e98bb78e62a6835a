// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <functional>
#include <vector>

#include "kernel/netlink/socket.h"
#include "kernel/nft/kernel_table.h"

namespace sidetrack::nft {

// Tables as they stand in the kernel, and the generation of the ruleset that they are part of.
struct Dump {
  std::uint32_t generation = 0;
  std::vector<KernelTable> tables;
};

// The tables for which `wanted` is true, whole: never a part of them. Retries, a bounded number of times, if another
// program changes the rules while they are read, or the kernel breaks off; then throws busy.
[[nodiscard]] Dump dump(netlink::Socket& socket, const std::function<bool(const TableKey&)>& wanted);

// Whether the table is of a family whose rules a pod's packets pass: inet, ip, ip6, netdev.
[[nodiscard]] bool of_pods(const TableKey& table);

}  // namespace sidetrack::nft
