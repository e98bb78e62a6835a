// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/target/kind.h"

namespace sidetrack {

struct Tproxy {            // TPROXY --tproxy-mark MARK/MASK --on-port PORT
  std::uint16_t port = 0;  // host byte order, as the mark and its mask
  std::uint32_t mark = 0;
  std::uint32_t mask = 0xffffffff;
  friend bool operator==(const Tproxy&, const Tproxy&) = default;

  static constexpr bool goes_on = false;
  static constexpr bool needs_tracking = false;
  TARGET_FUNCTIONS;
  [[nodiscard]] Facts changes() const { return facts::mark; }
};

}  // namespace sidetrack
