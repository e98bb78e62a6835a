// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <vector>

#include "rule/live.h"

namespace sidetrack {

// Returns the rules that the namespace holds once the plan is applied through `backend`: others' where they stand, ours
// as planned and nowhere else. `there`: the backend holds the plan already, and applying changes nothing in it, not
// even what others have put into a table of ours. A pure function.
[[nodiscard]] std::vector<Live> after_apply(const Ruleset& canonical, BackendKind backend, bool there,
                                            std::vector<Live> live);

}  // namespace sidetrack
