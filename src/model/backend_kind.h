// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sidetrack {

// The ways to hold rules in the kernel.
enum class BackendKind : std::uint8_t { iptables_legacy, iptables_nft, nftables };

inline constexpr BackendKind all_backends[] = {BackendKind::iptables_legacy, BackendKind::iptables_nft,
                                               BackendKind::nftables};

// As --backend takes it.
[[nodiscard]] constexpr std::string_view name(BackendKind kind) {
  constexpr std::string_view names[] = {"iptables-legacy", "iptables-nft", "nftables"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace sidetrack
