// SPDX-License-Identifier: GPL-2.0-or-later
// Which packets two sets of rules treat otherwise.
#pragma once

#include <string>
#include <vector>

#include "space/regions.h"

namespace sidetrack {

// Packets that end one way by the rules of the first side, and another way by those of the second.
struct EffectRegion {
  space::Box box;       // the packets; some of them are none that there can be
  std::string packets;  // in words: "outbound tcp, IPv4: to port 22"
  std::string before;   // "127.0.0.1:15001 (Envoy outbound)"
  std::string after;
  std::string witness;    // one of them: what stands after `sidetrack explain`
  bool ordinary = false;  // it is a new connection between hosts: see space::Scope
};

// Empty if every packet is treated the same. `regions` has two sides. Ordinary packets come first, the largest regions
// of them before the others. Regions overlap where they end alike.
[[nodiscard]] std::vector<EffectRegion> effect(space::Regions& regions);

[[nodiscard]] std::string effect_text(const std::vector<EffectRegion>& all, bool color);
[[nodiscard]] std::string effect_json(space::Regions& regions, const std::vector<EffectRegion>& all);

}  // namespace sidetrack
