// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "mesh/plan.h"
#include "pod/pod_view.h"

namespace sidetrack {

// Returns the pod without what other programs did to its loopback interface, policy rules, routes and checks of
// sources, as far as that decides whether a packet gets to the proxy. A pure function.
[[nodiscard]] PodView without_others(PodView pod, const Plan& plan);

}  // namespace sidetrack
