// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/match/kind.h"

namespace sidetrack {

struct UnknownMatch {  // one that is not understood entirely: whether it holds is unknown; only read
  std::string words;
  friend bool operator==(const UnknownMatch&, const UnknownMatch&) = default;

  static constexpr Facts reads = facts::packet;
  MATCH_FUNCTIONS(UnknownMatch);
};

}  // namespace sidetrack
