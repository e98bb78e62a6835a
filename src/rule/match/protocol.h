// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/match/kind.h"

namespace sidetrack {

struct ProtocolMatch {  // -p tcp
  Protocol protocol = Protocol::tcp;
  bool negated = false;
  friend bool operator==(const ProtocolMatch&, const ProtocolMatch&) = default;

  static constexpr Facts reads = facts::packet;
  MATCH_FUNCTIONS(ProtocolMatch);
};

}  // namespace sidetrack
