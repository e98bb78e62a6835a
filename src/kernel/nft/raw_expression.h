// SPDX-License-Identifier: GPL-2.0-or-later
// An expression of a rule as the kernel tells it: a name and attributes, of which none is lost on the way.
#pragma once

#include <linux/netfilter/nf_tables.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "kernel/netlink/attributes.h"

namespace sidetrack::nft {

using netlink::Attributes;
using netlink::network_order;
using netlink::payload;
using netlink::string;

// A set of attributes, as bits.
template <typename... Types>
constexpr std::uint32_t attributes(Types... types) {
  return (0U | ... | (1U << static_cast<unsigned>(types)));
}

// The bytes of NFTA_DATA_VALUE; empty if there is none.
[[nodiscard]] std::string value_in(const nlattr* data);

// Points into the bytes of its rule.
class RawExpression {
 public:
  explicit RawExpression(const nlattr* nest);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool has(int type) const { return found_[static_cast<std::size_t>(type)] != nullptr; }
  // Whether there is no attribute but these.
  [[nodiscard]] bool has_only(std::uint32_t these) const { return !odd_ && (present_ & ~these) == 0; }

  // Zero, or empty, for an attribute that is not there.
  [[nodiscard]] std::uint16_t u16(int type) const {
    return has(type) ? network_order<std::uint16_t>(at(type)) : std::uint16_t{0};
  }
  [[nodiscard]] std::uint32_t u32(int type) const { return has(type) ? network_order<std::uint32_t>(at(type)) : 0; }
  [[nodiscard]] std::uint64_t u64(int type) const { return has(type) ? network_order<std::uint64_t>(at(type)) : 0; }
  [[nodiscard]] std::string text(int type) const { return has(type) ? string(at(type)) : std::string(); }
  [[nodiscard]] std::string data(int type) const { return has(type) ? value_in(at(type)) : std::string(); }
  [[nodiscard]] const nlattr* at(int type) const { return found_[static_cast<std::size_t>(type)]; }

  // All of it, for what is not understood: "limit [1:0000000000000005 2:…]"
  [[nodiscard]] std::string words() const;

 private:
  std::string name_;
  std::array<const nlattr*, 32> found_{};
  std::uint32_t present_ = 0;
  bool odd_ = false;  // an attribute twice, or of a number that does not fit here, or beside name and data
};

// In order. `bytes` are those of NFTA_RULE_EXPRESSIONS.
[[nodiscard]] std::vector<RawExpression> expressions_of(std::span<const std::byte> bytes);

}  // namespace sidetrack::nft
