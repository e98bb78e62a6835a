// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/match/kind.h"

namespace sidetrack {

struct AddressMatch {  // -s 127.0.0.6/32, ! -d ::1/128
  End end = End::destination;
  std::vector<AddressRange> ranges;  // all of one family
  bool negated = false;
  friend bool operator==(const AddressMatch&, const AddressMatch&) = default;

  static constexpr Facts reads = facts::packet;
  MATCH_FUNCTIONS(AddressMatch);
  [[nodiscard]] auto& list() { return ranges; }
  [[nodiscard]] const auto& list() const { return ranges; }
  [[nodiscard]] bool is_like(const AddressMatch& other) const;
};

}  // namespace sidetrack
