// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "backend/nft/native.h"
#include "backend/nft/socket.h"
#include "backend/nft/transaction.h"

namespace sidetrack::nft {

// Tables as they stand in the kernel, and the generation of the ruleset that they are part of.
struct Dump {
  std::uint32_t generation = 0;
  std::vector<std::pair<TableKey, KernelTable>> tables;
};

// The tables of these families for which `wanted` is true, whole. Retries, a bounded number of times, if somebody
// changes the rules while they are read; then throws busy.
[[nodiscard]] Dump dump(Socket& socket, std::span<const std::uint8_t> families,
                        const std::function<bool(const TableKey&)>& wanted);

}  // namespace sidetrack::nft
