// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/match/kind.h"

namespace sidetrack {

struct InterfaceMatch {  // -i eth0, ! -o lo; a name that ends in + matches every name that begins so
  InterfaceDirection direction = InterfaceDirection::in;
  std::string name;
  bool negated = false;
  friend bool operator==(const InterfaceMatch&, const InterfaceMatch&) = default;

  static constexpr Facts reads = facts::packet;
  MATCH_FUNCTIONS(InterfaceMatch);
};

}  // namespace sidetrack
