// SPDX-License-Identifier: GPL-2.0-or-later
// Read from the kernel, and in no plan. `words` are those of iptables or nft.
#pragma once

#include "rule/target/kind.h"

namespace sidetrack {

struct NonTerminating {  // no target, LOG, TRACE, TEE, CLASSIFY …: the next rule is looked at, the packet goes its
                         // way
  std::string words;     // empty: a rule without a target, which only counts
  friend bool operator==(const NonTerminating&, const NonTerminating&) = default;

  static constexpr bool goes_on = true;
  static constexpr bool needs_tracking = false;
  TARGET_FUNCTIONS;
  [[nodiscard]] Facts changes() const { return facts::none; }
};

struct Reject {  // REJECT: dropped, and the sender is told
  std::string words;
  friend bool operator==(const Reject&, const Reject&) = default;

  static constexpr bool goes_on = false;
  static constexpr bool needs_tracking = false;
  TARGET_FUNCTIONS;
  [[nodiscard]] Facts changes() const { return facts::none; }
};

struct UnknownTarget {  // one that is not understood entirely: what becomes of the packet is unknown
  std::string words;
  friend bool operator==(const UnknownTarget&, const UnknownTarget&) = default;

  static constexpr bool goes_on = false;
  static constexpr bool needs_tracking = false;
  TARGET_FUNCTIONS;
  [[nodiscard]] Facts changes() const { return facts::all; }
};

}  // namespace sidetrack
