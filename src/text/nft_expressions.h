// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel/nft/kernel_table.h"
#include "text/nft_tables.h"

namespace sidetrack {

struct MadeTable {
  nft::KernelTable table;
  std::uint64_t handles = 0;   // that are taken
  std::size_t extensions = 0;  // of iptables, which nft has not printed whole
};

// Makes of a listed table what the kernel holds that was listed: the expressions that nft sends for its statements, so
// that its rules are read as the kernel's are. A statement that is not understood stays in its words. Throws Error
// (usage) for a hook that is not known.
[[nodiscard]] MadeTable kernel_table(const NftTable& listed);

}  // namespace sidetrack
