// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "evaluate/observer.h"

namespace sidetrack {

// Wants to be told nothing. A walk with an observer makes no texts, which among thousands of rules take the most time.
class NullObserver final : public Observer {
 public:
  void match(const Match& /*match*/, const PacketAtHook& /*packet*/) override {}
  void no_match(std::span<const Match* const> /*failing*/, const PacketAtHook& /*packet*/) override {}
  void address(const Address& /*value*/, std::span<const AddressRange> /*ranges*/) override {}
  void has_ports() override {}
  void protocol() override {}
  void interface() override {}
  void source() override {}
  void mark() override {}
  void mark(std::uint32_t /*now*/, std::uint32_t /*value*/, std::uint32_t /*mask*/) override {}
  void begins() override {}
  bool checkpoint(const Checkpoint& /*checkpoint*/) override { return true; }
};

}  // namespace sidetrack
