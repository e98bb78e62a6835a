// SPDX-License-Identifier: GPL-2.0-or-later
// Who is told what of a packet decides about its way, while it is followed: every packet that answers what was asked as
// this one does goes the same way. So one walk speaks for a whole region of packets.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "model/address.h"
#include "model/ruleset.h"

namespace sidetrack {

struct PacketAtHook;

class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  // A rule matches, or cannot be known to: what this match holds for was asked.
  virtual void match(const Match& match, const PacketAtHook& packet) = 0;
  // A rule does not match: `failing` do not hold, and any one of them is reason enough.
  virtual void no_match(std::span<const Match* const> failing, const PacketAtHook& packet) = 0;
  // Whether the address is in one of these, all of its own family.
  virtual void address(const Address& value, std::span<const AddressRange> ranges) = 0;
  virtual void has_ports() = 0;  // whether the protocol has
  virtual void protocol() = 0;   // which one it is
  virtual void interface() = 0;  // by which it comes, or to which its socket is bound
  virtual void source() = 0;     // whether the sender chose its source address, or the kernel does
  virtual void mark() = 0;       // its mark, or that of its connection
};

}  // namespace sidetrack
