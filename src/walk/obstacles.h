// SPDX-License-Identifier: GPL-2.0-or-later
// What of others' rules, policies and tables keeps asked traffic from where the plan brings it. None of it is ours to
// change. Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "mesh/plan.h"
#include "model/packet.h"
#include "pod/pod_view.h"
#include "rule/live.h"

namespace sidetrack {

// One place that decides otherwise, and a packet that shows it; or, with nothing but `rule`, what there was too much of
// to know.
struct Obstacle {
  std::string rule;  // "rule 1 of filter OUTPUT: -A OUTPUT -p tcp -j DROP", "the policy of raw OUTPUT: -P OUTPUT DROP"
  std::string packet;  // in the words of `explain`: "out tcp 192.0.2.1:80 --uid 1000"
  // Of what is not known, what it may do, if that is not to "keep traffic from the proxy".
  std::string planned;  // "lands on 127.0.0.1:15001 (Envoy outbound); …"
  std::string instead;  // "dropped by …"
  [[nodiscard]] bool is_unknown() const { return packet.empty(); }
};
[[nodiscard]] std::string text(const Obstacle& obstacle);  // one line

// The rules that the namespace holds once the plan is applied through `backend`: others' where they stand, ours as
// planned and nowhere else. `there`: the backend holds the plan already, and applying changes nothing in it, not even
// what others have put into a table of ours.
[[nodiscard]] std::vector<Live> after_apply(const Ruleset& canonical, BackendKind backend, bool there,
                                            std::vector<Live> live);

// The pod without what other programs did to its loopback interface, policy rules, routes and checks of sources.
[[nodiscard]] PodView without_others(PodView pod, const Plan& plan);

// Packets that the plan decides about, and packets that others' rules speak of, are followed through the rules of the
// plan alone and through `live`, which is what is there or after_apply(). One obstacle for each place that decides
// otherwise, with the first packet that met it and of which explain() says the same, asked by the obstacle's words;
// none if `live` holds nothing of others. The number of packets is bounded (see obstacles.cc). `more`: further packets
// to ask about.
[[nodiscard]] std::vector<Obstacle> obstacles(const Plan& plan, BackendKind backend, const PodView& pod,
                                              std::span<const Live> live, std::span<const Packet> more = {});

// The same of rules that are there already: what is ours of them is the plan.
[[nodiscard]] std::vector<Obstacle> obstacles(std::span<const Live> live, const Routing& ours, const PodView& pod);

}  // namespace sidetrack
