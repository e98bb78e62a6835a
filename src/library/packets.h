// SPDX-License-Identifier: GPL-2.0-or-later
// Which rules and which pod a packet is explained by.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernel/survey.h"
#include "mesh/plan.h"
#include "model/config.h"
#include "model/packet.h"
#include "pod/pod_view.h"
#include "rule/live.h"
#include "space/regions.h"
#include "walk/explain.h"

namespace sidetrack {

// By the rules of the plan, as the backend that is chosen first holds them. In the pod that is given its addresses
// count, with what the plan adds to it; without one, addresses of documentation.
[[nodiscard]] Trace explain_planned(const Packet& packet, const ApplyOptions& options, const Plan& plan,
                                    std::optional<PodView> pod);

// The pod and the rules that it is explained by.
[[nodiscard]] space::Side planned_side(const ApplyOptions& options, const Plan& plan, std::optional<PodView> pod);

// The rules of every backend that holds any. Throws not_permitted if one that may hold some of ours cannot be read;
// adds a sentence to `warnings` for any other that cannot.
[[nodiscard]] std::vector<Live> live_rules(Survey survey, std::vector<std::string>& warnings);

}  // namespace sidetrack
