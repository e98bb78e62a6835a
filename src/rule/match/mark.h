// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/match/kind.h"

namespace sidetrack {

struct MarkMatch {          // -m mark --mark 1337
  std::uint32_t value = 0;  // host byte order, as the mask
  std::uint32_t mask = 0xffffffff;
  bool negated = false;
  friend bool operator==(const MarkMatch&, const MarkMatch&) = default;

  static constexpr Facts reads = facts::mark;
  MATCH_FUNCTIONS(MarkMatch);
};

struct ConnmarkMatch {      // -m connmark --mark 1337
  std::uint32_t value = 0;  // host byte order, as the mask
  std::uint32_t mask = 0xffffffff;
  bool negated = false;
  friend bool operator==(const ConnmarkMatch&, const ConnmarkMatch&) = default;

  static constexpr Facts reads = facts::connection | facts::connmark;
  MATCH_FUNCTIONS(ConnmarkMatch);
};

}  // namespace sidetrack
