// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/target/kind.h"

namespace sidetrack {

struct CtZone {  // CT --zone
  std::uint16_t zone = 0;
  friend bool operator==(const CtZone&, const CtZone&) = default;

  static constexpr bool goes_on = true;
  static constexpr bool needs_tracking = true;
  TARGET_FUNCTIONS;
  [[nodiscard]] Facts changes() const { return facts::connection; }
};

struct Notrack {  // CT --notrack: conntrack and nat leave the packet alone, if they have not seen it yet; only read
  friend bool operator==(const Notrack&, const Notrack&) = default;

  static constexpr bool goes_on = true;
  static constexpr bool needs_tracking = true;
  TARGET_FUNCTIONS;
  [[nodiscard]] Facts changes() const { return facts::connection; }
};

}  // namespace sidetrack
