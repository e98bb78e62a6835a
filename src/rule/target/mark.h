// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/target/kind.h"

namespace sidetrack {

struct SetMark {  // MARK --set-xmark MARK/MASK: mark = (mark & ~MASK) ^ MARK, in host byte order
  std::uint32_t mark = 0;
  std::uint32_t mask = 0xffffffff;
  friend bool operator==(const SetMark&, const SetMark&) = default;

  static constexpr bool goes_on = true;
  static constexpr bool needs_tracking = false;
  TARGET_FUNCTIONS;
  [[nodiscard]] Facts changes() const { return facts::mark; }
};

struct Connmark {  // CONNMARK --save-mark, --restore-mark
  enum class Kind : std::uint8_t { save, restore };
  Kind kind = Kind::save;
  static const Connmark save;
  static const Connmark restore;
  friend bool operator==(const Connmark&, const Connmark&) = default;

  static constexpr bool goes_on = true;
  static constexpr bool needs_tracking = true;
  TARGET_FUNCTIONS;
  [[nodiscard]] Facts changes() const { return kind == Kind::save ? facts::connmark : facts::mark; }
};

inline constexpr Connmark Connmark::save{Connmark::Kind::save};
inline constexpr Connmark Connmark::restore{Connmark::Kind::restore};

struct SetConnmark {  // CONNMARK --set-xmark MARK/MASK: the connection's mark = (mark & ~MASK) ^ MARK, in host byte
                      // order
  std::uint32_t mark = 0;
  std::uint32_t mask = 0xffffffff;
  friend bool operator==(const SetConnmark&, const SetConnmark&) = default;

  static constexpr bool goes_on = true;
  static constexpr bool needs_tracking = true;
  TARGET_FUNCTIONS;
  [[nodiscard]] Facts changes() const { return facts::connmark; }
};

}  // namespace sidetrack
