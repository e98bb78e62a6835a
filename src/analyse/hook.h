// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sidetrack {

enum class Hook : std::uint8_t { prerouting, input, forward, output, postrouting };
inline constexpr Hook all_hooks[] = {Hook::prerouting, Hook::input, Hook::forward, Hook::output, Hook::postrouting};

[[nodiscard]] constexpr std::string_view name(Hook hook) {
  constexpr std::string_view names[] = {"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"};
  return names[static_cast<std::size_t>(hook)];
}

// NFT_JUMP_STACK_SIZE; xt counts its jumps when rules are loaded.
inline constexpr std::size_t deepest_jump = 16;

// The hook of a base chain, by its name: iptables' built-in ones, and those of Istio's nftables tables, in lower case.
[[nodiscard]] constexpr std::optional<Hook> hook_of(std::string_view chain) {
  constexpr std::string_view lower[] = {"prerouting", "input", "forward", "output", "postrouting"};
  for (const Hook hook : all_hooks) {
    if (chain == name(hook) || chain == lower[static_cast<std::size_t>(hook)]) return hook;
  }
  return {};
}

}  // namespace sidetrack
