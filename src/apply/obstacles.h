// SPDX-License-Identifier: GPL-2.0-or-later
// Names the rules, policies, routes and settings of other programs that keep traffic from where the plan brings it.
// Sidetrack changes none of them. Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "mesh/plan.h"
#include "pod/pod_view.h"
#include "rule/live.h"

namespace sidetrack {

// One place that decides otherwise, and a packet that shows it; or, with nothing but `rule`, what there was too much of
// to know.
struct Obstacle {
  std::string rule;  // "rule 1 of filter OUTPUT: -A OUTPUT -p tcp -j DROP", "the policy of raw OUTPUT: -P OUTPUT DROP"
  std::string packet;      // in the words of `explain`: "out tcp 192.0.2.1:80 --uid 1000"
  std::string planned;     // "lands on 127.0.0.1:15001 (Envoy outbound); …"
  std::string instead;     // "dropped by …"
  bool is_certain = true;  // false: it is unknown what becomes of the packet, or of the replies
  [[nodiscard]] bool is_unknown() const { return packet.empty(); }
};
[[nodiscard]] std::string text(const Obstacle& obstacle);  // one line
// Returns "something that Sidetrack must not change keeps traffic from the proxy", or "may keep".
[[nodiscard]] std::string sentence(std::span<const Obstacle> obstacles);

// Compares all packets that the plan alone captures with what becomes of them by `live`, which is what is there or
// after_apply(). Returns one obstacle for each place that decides otherwise, with a packet of which explain() says the
// same, asked by the obstacle's words; none if no packet ends otherwise; an unknown one if there are too many rules, or
// marks that rules ask for, to know.
[[nodiscard]] std::vector<Obstacle> obstacles(const Plan& plan, BackendKind backend, const PodView& pod,
                                              std::span<const Live> live);

// Returns the same of rules that are there already: what is ours of them is the plan.
[[nodiscard]] std::vector<Obstacle> obstacles(std::span<const Live> live, const Routing& ours, const PodView& pod);

}  // namespace sidetrack
