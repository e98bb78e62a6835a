// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/nft/fields.h"

namespace sidetrack::nft {

void compare_prefix(const AddressRange& range, const Field& field, bool negated, std::vector<Expression>& expressions) {
  const int length = range.prefix_length().value_or(range.first.bits());
  const std::uint32_t operation = negated ? NFT_CMP_NEQ : NFT_CMP_EQ;
  const auto address = range.first.view();
  if (length % 8 == 0 && length != 0) {
    const std::size_t size = static_cast<std::size_t>(length) / 8;
    expressions.emplace_back(PayloadLoad{field.base, field.offset, static_cast<std::uint32_t>(size)});
    expressions.emplace_back(Compare{operation, Data(address.first(size))});
    return;
  }
  Data none;
  none.size = static_cast<std::uint8_t>(field.size);
  expressions.emplace_back(field.load());
  expressions.emplace_back(Bitwise{Data(range.mask().view()), none});
  expressions.emplace_back(Compare{operation, Data(address)});
}

}  // namespace sidetrack::nft
