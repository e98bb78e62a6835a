// SPDX-License-Identifier: GPL-2.0-or-later
// Expressions of nf_tables as plain data, as this program writes them: what a rule consists of in the kernel, in the
// words of `nft --debug=netlink`. Every one that loads, changes or tests a value does so in register 1. Numbers are
// those of linux/netfilter/nf_tables.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "rule/xt/extension.h"

namespace sidetrack::nft {

// The content of a register: up to 16 bytes, in the byte order in which the kernel compares it.
struct Data {
  std::array<std::uint8_t, 16> bytes{};
  std::uint8_t size = 0;

  constexpr Data() = default;
  explicit Data(std::span<const std::uint8_t> from)
      : size(static_cast<std::uint8_t>(std::min(from.size(), bytes.size()))) {
    std::copy_n(from.begin(), size, bytes.begin());
  }
  static Data text(std::string_view from) {
    Data data;
    data.size = static_cast<std::uint8_t>(std::min(from.size(), data.bytes.size()));
    std::copy_n(from.begin(), data.size, data.bytes.begin());
    return data;
  }
  // A number in host byte order: marks, ids, conntrack states.
  template <typename Number>
  static Data host(Number number) {
    Data data;
    data.size = sizeof number;
    std::memcpy(data.bytes.data(), &number, sizeof number);
    return data;
  }
  // The same in network byte order: ports, and ids where ranges of them are compared. By shifts, which mean the same
  // whatever the order of this machine is.
  template <typename Number>
  static constexpr Data network(Number number) {
    Data data;
    data.size = sizeof number;
    for (std::size_t i = 0; i < sizeof number; ++i) {
      data.bytes[i] = static_cast<std::uint8_t>(number >> 8 * (sizeof number - 1 - i));
    }
    return data;
  }
  template <typename Number>
  [[nodiscard]] Number to_host() const {
    Number number{};
    std::memcpy(&number, bytes.data(), sizeof number);
    return number;
  }
  template <typename Number>
  [[nodiscard]] constexpr Number from_network() const {
    Number number{};
    for (std::size_t i = 0; i < sizeof number; ++i) number = static_cast<Number>(number << 8 | bytes[i]);
    return number;
  }
  [[nodiscard]] std::span<const std::uint8_t> view() const { return std::span(bytes).first(size); }
  friend auto operator<=>(const Data&, const Data&) = default;
};

struct MetaLoad {  // meta load l4proto => reg 1
  std::uint32_t key;
};
struct MetaStore {  // meta set mark with reg 1
  std::uint32_t key;
};
struct CtLoad {  // ct load state => reg 1
  std::uint32_t key;
};
struct CtStore {  // ct set zone with reg 1
  std::uint32_t key;
};
struct PayloadLoad {  // payload load 4b @ network header + 16 => reg 1
  std::uint32_t base;
  std::uint32_t offset;
  std::uint32_t size;
  friend bool operator==(const PayloadLoad&, const PayloadLoad&) = default;
};
struct CgroupLoad {     // socket load cgroupv2 level 2 => reg 1
  std::uint32_t level;  // of the sender's cgroups from the root on, counted from 1
};
struct Bitwise {  // bitwise reg 1 = ( reg 1 & mask ) ^ xor_value
  Data mask;
  Data xor_value;
};
struct ToNetworkOrder {  // byteorder reg 1 = hton(reg 1, 4, 4)
};
struct Compare {  // cmp eq reg 1 0x00000006
  std::uint32_t operation;
  Data with;
};
struct CompareRange {  // range neq reg 1 0x00003500 0x00003c00
  bool negated;
  Data first;
  Data last;
};
struct Lookup {  // lookup reg 1 set ranges
  std::string set;
  bool negated;
  std::uint32_t id;  // of the set, within the transaction that makes it
};
struct Load {  // immediate reg 1 0x00009e3a
  Data value;
};
struct Decide {  // immediate reg 0 jump -> CHAIN
  std::int32_t verdict;
  std::string chain;
};
struct Count {  // counter pkts 0 bytes 0
  std::uint64_t packets;
  std::uint64_t bytes;
};
struct RedirectTo {  // redir proto_min reg 1 flags 0x2
};
struct SnatTo {          // nat snat ip addr_min reg 1
  std::uint32_t family;  // NFPROTO_IPV4, NFPROTO_IPV6
};
struct TproxyTo {        // tproxy ip port reg 1
  std::uint32_t family;  // NFPROTO_…; NFPROTO_UNSPEC serves both
};
struct XtMatch {  // match name owner rev 1
  xt::Extension extension;
};
struct XtTarget {  // target name REDIRECT rev 0
  xt::Extension extension;
};
using Expression =
    std::variant<MetaLoad, MetaStore, CtLoad, CtStore, PayloadLoad, CgroupLoad, Bitwise, ToNetworkOrder, Compare,
                 CompareRange, Lookup, Load, Decide, Count, RedirectTo, SnatTo, TproxyTo, XtMatch, XtTarget>;

}  // namespace sidetrack::nft
