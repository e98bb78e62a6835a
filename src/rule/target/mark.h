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

// CONNMARK --save-mark: the connection's mark = (its mark & ~CTMASK) ^ (the packet's & NFMASK); --restore-mark: the
// packet's = (its mark & ~NFMASK) ^ (the connection's & CTMASK). Masks in host byte order. No bit stays and is
// inverted, too: of what is saved NFMASK is within CTMASK, of what is restored CTMASK within NFMASK.
struct Connmark {
  enum class Kind : std::uint8_t { save, restore };
  Kind kind = Kind::save;
  std::uint32_t nfmask = 0xffffffff;
  std::uint32_t ctmask = 0xffffffff;
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
