// SPDX-License-Identifier: GPL-2.0-or-later
// What rules of nft compare, and with what: the fields of packets that the model has, and values as nft prints them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "rule/nft/comparison.h"
#include "text/nft_tables.h"

namespace sidetrack {

enum class ValueType : std::uint8_t {
  number,
  port,
  address,
  name,
  device,  // its name; of a number, which is an index, the text does not tell the name
  protocol,
  nfproto,
  ethertype,
  state,
  status,
  direction,
  tcp_flags,
  address_type
};

// A field, and how the kernel loads it.
struct LoadedKey {
  nft::Value::Of of = nft::Value::Of::meta;  // meta, ct, tuple, payload, fib, or unknown: of numgen
  std::uint32_t key = 0;                     // as nft::Value has it; of numgen, its modulus
  std::uint32_t offset = 0;                  // of a payload or a tuple; of numgen, NFT_NG_RANDOM or …_INCREMENTAL
  std::uint32_t size = 0;
  ValueType type = ValueType::number;
  bool host_order = false;
  bool swapped = false;  // to be compared in network order, as ranges of numbers need it

  [[nodiscard]] std::uint32_t registers() const { return (size + 3) / 4; }
};

// Nothing for what the model has not. An interface is known by its name alone.
[[nodiscard]] std::optional<LoadedKey> key_of(const NftNode& key);
// Whether it is `meta NAME`, `ct NAME`, `socket NAME`.
[[nodiscard]] bool is_key(const NftNode& key, std::string_view of, std::string_view name);
[[nodiscard]] bool has_bits(ValueType type);

// 6, tcp; of several bits their sum: syn,ack. Nothing for what is none.
[[nodiscard]] std::optional<std::uint64_t> number_in(ValueType type, const NftNode& value);
// 80, 1-5
[[nodiscard]] std::optional<std::pair<std::uint64_t, std::uint64_t>> numbers_in(ValueType type, const NftNode& value);
// As the kernel compares the field.
[[nodiscard]] std::optional<std::string> number_bytes(const LoadedKey& key, std::uint64_t number);
[[nodiscard]] std::optional<nft::Bounds> bounds_of(const LoadedKey& key, const NftNode& value);
[[nodiscard]] bool needs_swap(const LoadedKey& key, const NftNode& value);

}  // namespace sidetrack
