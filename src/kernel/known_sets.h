// SPDX-License-Identifier: GPL-2.0-or-later
// The sets of ip_set, by the numbers that rules of iptables have in place of their names.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rule/live.h"

namespace sidetrack {

struct KnownSet {
  std::string name;
  // Of hash:ip, hash:net and bitmap:ip; nothing of other types, and where addresses expire or are left out again.
  std::optional<std::vector<AddressRange>> members{};
};
using KnownSets = std::map<std::uint16_t, KnownSet>;

// The sets by their names, and what they hold, where rules ask them.
void name_sets(std::vector<LiveChain>& chains, const KnownSets& sets);

}  // namespace sidetrack
