// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/match/kind.h"

namespace sidetrack {

struct PortMatch {  // --dport 53, ! --sport 15053, -m multiport ! --dports 53,15008
  End end = End::destination;
  std::vector<PortRange> ports;
  bool negated = false;
  friend bool operator==(const PortMatch&, const PortMatch&) = default;

  static constexpr Facts reads = facts::packet;
  MATCH_FUNCTIONS(PortMatch);
  [[nodiscard]] auto& list() { return ports; }
  [[nodiscard]] const auto& list() const { return ports; }
  [[nodiscard]] bool is_like(const PortMatch& other) const;
};

struct EitherPortMatch {  // -m multiport ! --ports 53,80: its source port, its destination port or both
  std::vector<PortRange> ports;
  bool negated = false;
  friend bool operator==(const EitherPortMatch&, const EitherPortMatch&) = default;

  static constexpr Facts reads = facts::packet;
  MATCH_FUNCTIONS(EitherPortMatch);
};

}  // namespace sidetrack
