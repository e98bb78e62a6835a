// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/target/kind.h"

namespace sidetrack {

struct Verdict {  // ACCEPT, DROP, RETURN
  enum class Kind : std::uint8_t { accept, drop, return_ };
  Kind kind = Kind::accept;
  static const Verdict accept;
  static const Verdict drop;
  static const Verdict return_;
  [[nodiscard]] std::string_view name() const;  // "ACCEPT"
  friend bool operator==(const Verdict&, const Verdict&) = default;

  static constexpr bool goes_on = false;
  static constexpr bool needs_tracking = false;
  TARGET_FUNCTIONS;
  [[nodiscard]] Facts changes() const { return facts::none; }
};

inline constexpr Verdict Verdict::accept{Verdict::Kind::accept};
inline constexpr Verdict Verdict::drop{Verdict::Kind::drop};
inline constexpr Verdict Verdict::return_{Verdict::Kind::return_};

struct Jump {
  std::string chain;
  bool is_goto = false;  // -g, goto: what returns from there returns from here, too
  friend bool operator==(const Jump&, const Jump&) = default;

  static constexpr bool goes_on = false;
  static constexpr bool needs_tracking = false;
  TARGET_FUNCTIONS;
  [[nodiscard]] Facts changes() const { return facts::none; }
};

}  // namespace sidetrack
