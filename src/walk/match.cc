// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk/match.h"

namespace sidetrack {

bool holds_observed(const Match& match, const PacketAtHook& packet) {
  const bool is = holds(match, packet);
  const Match* const asked = &match;
  if (packet.observer != nullptr && is) packet.observer->match(match, packet);
  if (packet.observer != nullptr && !is) packet.observer->no_match({&asked, 1}, packet);
  return is;
}

}  // namespace sidetrack
