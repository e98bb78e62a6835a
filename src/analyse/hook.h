// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>

#include "sidetrack/backend.h"

namespace sidetrack {

// NFT_JUMP_STACK_SIZE; xt counts its jumps when rules are loaded.
inline constexpr std::size_t deepest_jump = 16;

// Whether the kernel calls this chain at the hook.
[[nodiscard]] inline bool called_at(const LiveChain& chain, Hook hook) {
  return chain.hook && chain.hook->hook == hook && !chain.dormant;
}

}  // namespace sidetrack
