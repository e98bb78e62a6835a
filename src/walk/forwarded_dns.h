// SPDX-License-Identifier: GPL-2.0-or-later
// DNS of hosts behind the pod, such as containers in it: their queries are forwarded, and replies that the rules of DNS
// capture put into another conntrack zone do not come back to them where their source is translated. Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "mesh/plan.h"
#include "pod/pod_view.h"
#include "rule/live.h"

namespace sidetrack {

// A forwarded query whose replies the requested rules lose: they arrive with the rules of others alone.
struct LostReplies {
  std::string packet;     // in the words of `explain`: "in udp 10.96.0.10:53 --from 172.17.0.2 --in-interface docker0"
  std::string interface;  // by which it comes in
  std::string why;        // "they are tracked in conntrack zone 1 …: they stay in the pod"
};
[[nodiscard]] std::string text(const LostReplies& lost);  // one line

// Whether hosts behind the pod may be reached by the interface: it is not that of the default route.
[[nodiscard]] bool leads_behind(const PodView& pod, Family family, const std::string& interface);

// One of each interface at most. `live`: what is there, or after_apply().
[[nodiscard]] std::vector<LostReplies> lost_forwarded_dns(const Plan& plan, const PodView& pod,
                                                          std::span<const Live> live);
// Whether there is anything that this is about.
[[nodiscard]] bool may_lose_forwarded_dns(const Plan& plan, const PodView& pod);

}  // namespace sidetrack
