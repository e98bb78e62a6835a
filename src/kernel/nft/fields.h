// SPDX-License-Identifier: GPL-2.0-or-later
// What writing and reading native rules have in common: where the values of a packet are, and what the kernel's numbers
// for them mean.
#pragma once

#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/nft/expression.h"
#include "kernel/nft/native.h"
#include "model/ruleset.h"

namespace sidetrack::nft {

// Key types, as nft numbers them (its src/datatype.c; part of its format in the kernel since the beginning).
inline constexpr KeyType ipv4_addr{"ipv4_addr", 7, 4, false};
inline constexpr KeyType ipv6_addr{"ipv6_addr", 8, 16, false};
inline constexpr KeyType inet_service{"inet_service", 13, 2, false};
inline constexpr KeyType uid_type{"uid", 24, 4, true};
inline constexpr KeyType gid_type{"gid", 25, 4, true};

// A field of a packet's headers.
struct Field {
  const char* text;  // nft's name; of a port, the part after the protocol
  std::uint32_t base;
  std::uint32_t offset;
  std::uint32_t size;
  End end;
  std::optional<Family> family;  // of an address
  [[nodiscard]] PayloadLoad load() const { return {base, offset, size}; }
};
inline constexpr Field fields[] = {
    {"ip saddr", NFT_PAYLOAD_NETWORK_HEADER, 12, 4, End::source, Family::ipv4},
    {"ip daddr", NFT_PAYLOAD_NETWORK_HEADER, 16, 4, End::destination, Family::ipv4},
    {"ip6 saddr", NFT_PAYLOAD_NETWORK_HEADER, 8, 16, End::source, Family::ipv6},
    {"ip6 daddr", NFT_PAYLOAD_NETWORK_HEADER, 24, 16, End::destination, Family::ipv6},
    {"sport", NFT_PAYLOAD_TRANSPORT_HEADER, 0, 2, End::source, {}},
    {"dport", NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2, End::destination, {}},
};
inline const Field& address_field(Family family, End end) {
  return fields[(family == Family::ipv6 ? 2 : 0) + (end == End::destination ? 1 : 0)];
}
inline const Field& port_field(End end) { return fields[end == End::destination ? 5 : 4]; }

// Compares an address field with a CIDR: as many whole bytes as the prefix has, or all and the prefix's bits.
void compare_prefix(const AddressRange& range, const Field& field, bool negated, std::vector<Expression>& expressions);

inline std::uint8_t nfproto(Family family) { return family == Family::ipv4 ? NFPROTO_IPV4 : NFPROTO_IPV6; }

// In the order in which nft prints them.
struct ConntrackState {
  const char* name;
  std::uint8_t model;
  std::uint32_t kernel;
};
inline constexpr ConntrackState conntrack_states[] = {
    {"invalid", ConntrackStateMatch::invalid, NF_CT_STATE_INVALID_BIT},
    {"established", ConntrackStateMatch::established, NF_CT_STATE_BIT(IP_CT_ESTABLISHED)},
    {"related", ConntrackStateMatch::related, NF_CT_STATE_BIT(IP_CT_RELATED)},
    {"new", ConntrackStateMatch::new_, NF_CT_STATE_BIT(IP_CT_NEW)},
    {"untracked", ConntrackStateMatch::untracked, NF_CT_STATE_UNTRACKED_BIT},
};

// A hook as the kernel numbers it (NF_INET_PRE_ROUTING …), and as nft names it.
[[nodiscard]] std::uint32_t hook_number(Hook hook);
[[nodiscard]] std::string hook_text(const HookPoint& point);  // "type nat hook output priority -100"

// The other way; `family` is that of the table (NFPROTO_…). Nothing for what is no hook of a pod's packets.
[[nodiscard]] std::optional<Hook> hook_of(std::uint8_t family, std::uint32_t number);
[[nodiscard]] std::optional<ChainType> type_named(std::string_view wanted);

// Why a rule is there as a comment, "-d 15090: left to the app", within what nft reads (128 bytes with the final zero).
[[nodiscard]] std::string comment(const std::string& flag, const std::string& sentence);

}  // namespace sidetrack::nft
