// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/match/kind.h"

namespace sidetrack {

struct TcpFlagsMatch {    // --tcp-flags FIN,SYN,RST,ACK SYN, which is --syn: those of `mask` that a packet has are
                          // `flags`
  std::uint8_t mask = 0;  // the bits of the TCP header's byte 13: RFC 9293, section 3.1
  std::uint8_t flags = 0;
  bool negated = false;
  friend bool operator==(const TcpFlagsMatch&, const TcpFlagsMatch&) = default;

  static constexpr Facts reads = facts::packet | facts::flags;
  MATCH_FUNCTIONS(TcpFlagsMatch);
};

}  // namespace sidetrack
