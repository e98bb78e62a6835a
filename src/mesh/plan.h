// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/config.h"
#include "pod/routing.h"
#include "rule/ruleset.h"

namespace sidetrack {

struct Plan {
  Families families;                 // those for which rules are built
  std::vector<Address> dns_servers;  // those whose traffic is captured
  Ruleset ruleset;
  Routing routing;
  std::vector<std::string> warnings;
};

// The rules of istio-iptables for these options, in its order; for --dataplane ambient those of Istio's agent on the
// node. A pure function: it reads nothing, and the same input
// gives the same plan everywhere. Mode::none plans nothing.
[[nodiscard]] Plan plan(const Config& config, const HostFacts& facts);

// Whether -d has the ports alone that injectors exclude in every pod without being asked: those of the proxy, and the
// status port. Without effect, they are not worth a warning.
[[nodiscard]] bool are_excluded_unasked(const std::vector<PortRange>& ports);

}  // namespace sidetrack
