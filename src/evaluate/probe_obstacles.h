// SPDX-License-Identifier: GPL-2.0-or-later
// What of others' rules decides about the source of the kubelet's probes before the rules of `host-probes` do. Pure
// functions.
#pragma once

#include <span>
#include <vector>

#include "evaluate/obstacles.h"
#include "mesh/plan.h"
#include "model/live.h"
#include "model/pod.h"

namespace sidetrack {

// Probes to pods of the plan, as others' rules for the source of packets speak of them, are followed through `live`,
// which is as obstacles() takes it. They have no mark, and the source that the route gives them. One obstacle for each
// rule that decides first, or may. The number of probes is bounded.
[[nodiscard]] std::vector<Obstacle> probe_obstacles(const Plan& plan, const PodView& node, std::span<const Live> live);

}  // namespace sidetrack
