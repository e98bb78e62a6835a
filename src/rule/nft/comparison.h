// SPDX-License-Identifier: GPL-2.0-or-later
// A comparison in a native rule of nf_tables, which the kinds of match read: what is compared, and with what.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/address.h"
#include "model/range.h"
#include "rule/kinds.h"
#include "system/cgroup.h"

namespace sidetrack::nft {

struct Field;

// What a register holds: where it came from, and what became of it.
struct Value {
  enum class Of : std::uint8_t { unknown, constant, meta, ct, tuple, payload, socket, fib };
  Of of = Of::unknown;
  std::uint32_t key = 0;     // NFT_META_…, NFT_CT_…, NFT_PAYLOAD_…_HEADER, NFTA_FIB_F_… of a type
  std::uint32_t offset = 0;  // of a payload; of a cgroup, its level; of a tuple of ct, 1 for that of replies
  std::uint32_t size = 0;
  std::string constant{};  // as it stands in memory
  // Changed to (value & mask) ^ xor_value; both as long as the value. Empty: as it was loaded.
  std::string mask{};
  std::string xor_value{};
  bool swapped = false;       // from host to network order, or back
  std::size_t epoch = 0;      // how many things the rule had changed when it was loaded
  std::string words{};        // for what is not understood
  std::uint32_t modulus = 0;  // of numgen without an offset: it is less; 0: it may be any

  [[nodiscard]] bool changed() const { return !mask.empty(); }
  [[nodiscard]] bool in_network_order() const { return (of == Of::payload || of == Of::tuple) != swapped; }
  // Whether a comparison byte by byte compares numbers.
  [[nodiscard]] bool ordered() const { return size == 1 || in_network_order(); }
  [[nodiscard]] bool is_meta(std::uint32_t wanted) const { return of == Of::meta && key == wanted; }
  [[nodiscard]] bool is_ct(std::uint32_t wanted) const { return of == Of::ct && key == wanted; }
};

// Values from first to last, as the kernel compares them: byte by byte.
using Bounds = std::pair<std::string, std::string>;

// Ways in which a condition can hold, each a list of matches that must all hold; no packet is in two of them. None: it
// never holds. One without matches: it always holds.
using Alternatives = std::vector<std::vector<Match>>;

inline constexpr std::uint32_t ethertype_ipv4 = 0x0800;  // <linux/if_ether.h>: ETH_P_*
inline constexpr std::uint32_t ethertype_ipv6 = 0x86dd;
inline constexpr std::uint32_t ethertype_arp = 0x0806;
// Tells whether it is one of these single values of `meta protocol`.
[[nodiscard]] bool has_ethertype(const Value& value, std::span<const Bounds> bounds, std::uint32_t type);

struct DecodeContext {
  Families families;   // of the packets that come here: a network header is of a known family or none
  bool native = true;  // false among the rules of iptables, where a packet without a socket has another meaning
  const CgroupPaths* cgroups = nullptr;  // not owned; nullptr: none has a path
};

// Whether the value lies within one of the bounds (or, negated, in none). There is at least one.
struct Comparison {
  const Value& value;
  std::span<const Bounds> bounds;
  bool negated;
  const DecodeContext& context;
  const Field* field = nullptr;  // of a payload: the address or port that begins there
  bool is_protocol = false;      // of a payload: the protocol in the network header
  bool is_tcp_flags = false;     // of a payload: the flags in the header of TCP

  [[nodiscard]] bool is_one_value() const {
    return bounds.size() == 1 && bounds.front().first == bounds.front().second;
  }
};

// When the comparison holds; nothing if no kind of match can say it.
[[nodiscard]] std::optional<Alternatives> condition(const Value& value, std::span<const Bounds> bounds, bool negated,
                                                    const DecodeContext& context);

// The family that a comparison of `meta nfproto` or `meta protocol` leaves; nothing if it is another comparison.
[[nodiscard]] std::optional<Families> family_condition(const Value& value, std::span<const Bounds> bounds,
                                                       bool negated);

// "meta mark", "@nh,72,8 & ff": of what is compared, in words.
[[nodiscard]] std::string words(const Value& value);

// How many bytes the kernel loads for a key of meta or ct; 0 if that is not known.
[[nodiscard]] std::uint32_t meta_size(std::uint32_t key);
[[nodiscard]] std::uint32_t ct_size(std::uint32_t key);

// ---- For the kinds of match.

// As a number of the value's own size, whatever its order in memory is.
[[nodiscard]] std::uint32_t number_of(const Value& value, const std::string& bytes);

// The bounds as ranges of numbers; nothing if the kernel's order is not that of numbers.
template <typename Number>
[[nodiscard]] std::optional<std::vector<Range<Number>>> ranges_of(const Comparison& comparison) {
  std::vector<Range<Number>> ranges;
  for (const auto& [first, last] : comparison.bounds) {
    if (first != last && !comparison.value.ordered()) return std::nullopt;
    const Range<Number> range{static_cast<Number>(number_of(comparison.value, first)),
                              static_cast<Number>(number_of(comparison.value, last))};
    if (range.first <= range.last) ranges.push_back(range);
  }
  std::ranges::sort(ranges);
  return ranges;
}

[[nodiscard]] Alternatives always();
[[nodiscard]] Alternatives never();
[[nodiscard]] Alternatives only(Match match);
// One match for each value: any of them, or none. Nothing if they are too many.
[[nodiscard]] std::optional<Alternatives> each_of(std::vector<Match> matches, bool negated);

}  // namespace sidetrack::nft
