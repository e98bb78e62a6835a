// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/nft/raw_expression.h"

#include <fmt/format.h>

namespace sidetrack::nft {

std::string value_in(const nlattr* data) {
  const nlattr* value = Attributes(data).find(NFTA_DATA_VALUE);
  if (value == nullptr) return {};
  const auto bytes = payload(value);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

RawExpression::RawExpression(const nlattr* nest) {
  for (const nlattr* part : Attributes(nest)) {
    switch (mnl_attr_get_type(part)) {
      case NFTA_EXPR_NAME:
        name_ = string(part);
        break;
      case NFTA_EXPR_DATA:
        for (const nlattr* attribute : Attributes(part)) {
          const std::uint16_t type = mnl_attr_get_type(attribute);
          odd_ = odd_ || type >= found_.size() || has(type);
          if (type >= found_.size()) continue;
          found_[type] = attribute;
          present_ |= attributes(type);
        }
        break;
      default:
        odd_ = true;
    }
  }
}

std::string RawExpression::words() const {
  std::string list;
  for (const nlattr* attribute : found_) {
    if (attribute == nullptr) continue;
    list += fmt::format("{}{}:", list.empty() ? "" : " ", mnl_attr_get_type(attribute));
    for (const std::byte byte : payload(attribute)) list += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  }
  return list.empty() ? name_ : fmt::format("{} [{}]", name_, list);
}

std::vector<RawExpression> expressions_of(std::span<const std::byte> bytes) {
  std::vector<RawExpression> result;
  constexpr std::size_t usual = 8;  // of a rule as we and iptables write it
  result.reserve(usual);
  for (const nlattr* nest : Attributes(bytes)) result.emplace_back(nest);
  return result;
}

}  // namespace sidetrack::nft
