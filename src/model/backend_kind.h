// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace sidetrack {

// The ways to hold rules in the kernel.
enum class BackendKind : std::uint8_t { iptables_legacy, iptables_nft, nftables };

inline constexpr BackendKind all_backends[] = {BackendKind::iptables_legacy, BackendKind::iptables_nft,
                                               BackendKind::nftables};

// In what they differ, beside the encoding. The name is a string literal.
struct BackendTraits {
  std::string_view name;  // as --backend takes it
  bool of_nf_tables;      // committed in one transaction with others of nf_tables
  // No table is shared with other programs. Its chains are of both families, with native expressions and sets: see
  // fold().
  bool in_own_table;
  // How deep jumps may nest: NFT_JUMP_STACK_SIZE in nf_tables, which refuses rules that nest deeper. Legacy iptables
  // has room for as many as there are chains (xt_table_info.stacksize); what nests deeper than this is not followed,
  // and said.
  std::size_t deepest_jump;
};

inline constexpr BackendTraits backend_traits[] = {
    {"iptables-legacy", false, false, 1000},
    {"iptables-nft", true, false, 16},
    {"nftables", true, true, 16},
};
static_assert(std::size(backend_traits) == std::size(all_backends));

[[nodiscard]] constexpr const BackendTraits& traits(BackendKind kind) {
  return backend_traits[static_cast<std::size_t>(kind)];
}
// What --backend takes.
inline constexpr std::string_view backend_choices = "auto|nftables|iptables-nft|iptables-legacy";
[[nodiscard]] constexpr std::string_view name(BackendKind kind) { return traits(kind).name; }

}  // namespace sidetrack
