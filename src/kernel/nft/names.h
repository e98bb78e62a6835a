// SPDX-License-Identifier: GPL-2.0-or-later
// The names and numbers that the kernel and nft have for hooks, expressions and tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rule/hook.h"
#include "rule/nft/expression.h"

namespace sidetrack::nft {

// A hook as the kernel numbers it (NF_INET_PRE_ROUTING …), and as nft names it.
[[nodiscard]] std::uint32_t hook_number(Hook hook);
[[nodiscard]] std::string hook_text(const HookPoint& point);           // "type nat hook output priority -100"
[[nodiscard]] std::optional<Hook> hook_called(std::string_view name);  // "output"
// NFPROTO_INET of "inet"; nothing for what is no family of nft.
[[nodiscard]] std::optional<std::uint8_t> family_named(std::string_view name);

// The other way; `family` is that of the table (NFPROTO_…). Nothing for what is no hook of a pod's packets.
[[nodiscard]] std::optional<Hook> hook_of(std::uint8_t family, std::uint32_t number);
[[nodiscard]] std::optional<ChainType> type_named(std::string_view wanted);

// Why a rule is there as a comment, "-d 15090: left to the app", within what nft reads (128 bytes with the final zero).
[[nodiscard]] std::string comment(const std::string& flag, const std::string& sentence);

}  // namespace sidetrack::nft
