// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/ruleset.h"

namespace sidetrack {

// The matches in the order in which iptables lists them: -s -d -i -o -p, then the extensions as they were given. The
// kernel does not keep another order of the first five, so that what is read back and what is asked look alike.
[[nodiscard]] Rule in_iptables_order(Rule rule);
[[nodiscard]] Ruleset in_iptables_order(Ruleset ruleset);

}  // namespace sidetrack
