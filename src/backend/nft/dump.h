// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <functional>
#include <vector>

#include "backend/nft/native.h"
#include "backend/nft/socket.h"

namespace sidetrack::nft {

// Tables as they stand in the kernel, and the generation of the ruleset that they are part of.
struct Dump {
  std::uint32_t generation = 0;
  std::vector<KernelTable> tables;
};

// The tables for which `wanted` is true, whole. Retries, a bounded number of times, if somebody changes the rules while
// they are read; then throws busy.
[[nodiscard]] Dump dump(Socket& socket, const std::function<bool(const TableKey&)>& wanted);

}  // namespace sidetrack::nft
