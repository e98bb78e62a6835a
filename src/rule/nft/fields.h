// SPDX-License-Identifier: GPL-2.0-or-later
// Where the values of a packet are, as native rules of nf_tables load them.
#pragma once

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "model/address.h"
#include "model/protocol.h"
#include "rule/nft/expression.h"

namespace sidetrack::nft {

// A field of a packet's headers.
struct Field {
  const char* text;  // nft's name, a literal; of a port, the part after the protocol
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

// The flags of TCP. They are read where the rule asks for the protocol.
inline constexpr PayloadLoad tcp_flags{NFT_PAYLOAD_TRANSPORT_HEADER, 13, 1};

// What nft calls the flags of fib, NFTA_FIB_F_…, the lowest first.
inline constexpr std::string_view fib_flags[] = {"saddr", "daddr", "mark", "iif", "oif"};

// Compares an address field with a CIDR: as many whole bytes as the prefix has, or all and the prefix's bits.
void compare_prefix(const AddressRange& range, const Field& field, bool negated, std::vector<Expression>& expressions);

inline std::uint8_t nfproto(Family family) { return family == Family::ipv4 ? NFPROTO_IPV4 : NFPROTO_IPV6; }

}  // namespace sidetrack::nft
