// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/match/kind.h"

namespace sidetrack {

inline constexpr std::uint16_t unknown_set = 0xffff;  // IPSET_INVALID_ID
struct SetMatch {  // -m set --match-set NAME dst: an address that is in a set of ip_set
  End end = End::destination;
  std::string name;  // empty: the kernel was not asked for it
  // The kernel's number of the set, which its rules have in place of the name.
  std::uint16_t index = unknown_set;
  // What the set holds; nothing: not known, or more than addresses. No part of the rule.
  std::optional<std::vector<AddressRange>> members{};
  bool negated = false;
  friend bool operator==(const SetMatch& a, const SetMatch& b) {
    const bool named = !a.name.empty() && !b.name.empty();
    return a.end == b.end && a.negated == b.negated && (named ? a.name == b.name : a.index == b.index);
  }

  static constexpr Facts reads = facts::packet;
  MATCH_FUNCTIONS(SetMatch);
};

}  // namespace sidetrack
