// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/match/kind.h"

namespace sidetrack {

struct ConntrackStateMatch {  // -m conntrack --ctstate RELATED,ESTABLISHED
  enum State : std::uint8_t {
    invalid = 1,
    established = 2,
    related = 4,
    new_ = 8,
    untracked = 16,
    snat = 32,  // of iptables: it has a connection that is translated
    dnat = 64,
  };
  std::uint8_t states = 0;  // State bits
  bool negated = false;
  friend bool operator==(const ConntrackStateMatch&, const ConntrackStateMatch&) = default;

  static constexpr Facts reads = facts::connection;
  MATCH_FUNCTIONS(ConntrackStateMatch);
};

struct ConntrackDirectionMatch {  // -m conntrack --ctdir REPLY: against the direction in which the connection began
  bool reply = true;
  friend bool operator==(const ConntrackDirectionMatch&, const ConntrackDirectionMatch&) = default;

  static constexpr Facts reads = facts::connection;
  MATCH_FUNCTIONS(ConntrackDirectionMatch);
};

}  // namespace sidetrack
