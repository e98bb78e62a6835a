// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sidetrack/explain.h"

namespace sidetrack {

// A packet as a rule sees it at one hook.
struct PacketAtHook {
  Protocol protocol = Protocol::tcp;
  Endpoint source;
  Endpoint destination;
  std::string in;   // empty in OUTPUT and POSTROUTING
  std::string out;  // empty in PREROUTING and INPUT
  std::uint32_t mark = 0;
  std::optional<Owner> owner;  // of the socket; nothing once the packet came in by an interface, lo too (skb_orphan)
  ConnectionState state = ConnectionState::new_;
  std::optional<std::uint32_t> connmark;  // nothing: no connection (state invalid)
  bool native = false;                    // the rule is of native nf_tables expressions, not of xt's
};

// Whether the match holds. Of an UnknownMatch that is not known (see `is_unknown`): taken as not.
[[nodiscard]] bool holds(const Match& match, const PacketAtHook& packet);
// Nothing if it does; else what the packet has instead ("its destination is 10.0.0.1").
[[nodiscard]] std::optional<std::string> why_not(const Match& match, const PacketAtHook& packet);
[[nodiscard]] bool is_unknown(const Match& match);

}  // namespace sidetrack
