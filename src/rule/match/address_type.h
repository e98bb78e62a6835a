// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <vector>

#include "rule/match/kind.h"

namespace sidetrack {

// -m addrtype ! --dst-type LOCAL,BROADCAST --limit-iface-in, fib daddr . iif type local: what the pod's addresses and
// table local say of an address.
struct AddressTypeMatch {
  End end = End::destination;
  std::uint16_t types = 0;  // bits, counted by RTN_… of <linux/rtnetlink.h>
  bool negated = false;
  std::optional<InterfaceDirection> limit{};  // only what is there by this interface of the packet counts
  friend bool operator==(const AddressTypeMatch&, const AddressTypeMatch&) = default;

  // Addresses that one answer, without `negated`, is for. The first of them that an address is in counts; the last has
  // all.
  struct Answer {
    Truth truth;
    std::vector<AddressRange> ranges;
  };
  [[nodiscard]] std::vector<Answer> answers(const PacketAtHook& packet) const;

  static constexpr Facts reads = facts::packet;
  MATCH_FUNCTIONS(AddressTypeMatch);
};

// The direction that --limit-iface-in or --limit-iface-out says.
[[nodiscard]] std::optional<InterfaceDirection> read_limit(std::string_view option);

}  // namespace sidetrack
