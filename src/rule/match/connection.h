// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <vector>

#include "rule/match/kind.h"

namespace sidetrack {

// -m conntrack --ctorigdst 10.0.0.0/8 --ctorigdstport 80 --ctproto 6 --ctstatus CONFIRMED: what connection tracking
// notes of the packet's connection. Without a connection it never holds.
struct ConnectionMatch {
  enum class Of : std::uint8_t { address, port, protocol, status };
  Of of = Of::address;
  bool reply = false;  // address, port: of the tuple of replies, which has what translation made of the connection
  End end = End::source;
  bool negated = false;
  std::vector<AddressRange> addresses;  // all of one family
  std::vector<PortRange> ports;
  std::uint16_t number = 0;  // of the protocol; status: any of these bits, IPS_…
  friend bool operator==(const ConnectionMatch&, const ConnectionMatch&) = default;

  // An end of a connection, and what decides about the match: whether it is one of these.
  struct Question {
    Endpoint endpoint;
    std::vector<AddressRange> addresses;
    std::vector<PortRange> ports;
  };
  [[nodiscard]] std::vector<Question> questions(const PacketAtHook& packet) const;

  static constexpr Facts reads = facts::connection;
  MATCH_FUNCTIONS(ConnectionMatch);
};

// Whether one of the bits of its connection's status is set, IPS_…
[[nodiscard]] Truth has_status(const PacketAtHook& packet, std::uint16_t bits);

// Replaces what one `-m conntrack` asks, from `first` on, by its words if the kernel asks more than each of them: with
// --ctstate, a packet without a connection meets nothing but the state (conntrack_mt).
void join_if_odd(std::vector<Match>& matches, std::size_t first);

}  // namespace sidetrack
