// SPDX-License-Identifier: GPL-2.0-or-later
#include "library/packets.h"

#include <algorithm>
#include <utility>

#include "apply/choice.h"
#include "kernel/routes.h"
#include "rule/ours.h"

namespace sidetrack {
Trace explain_planned(const Packet& packet, const ApplyOptions& options, const Plan& plan, std::optional<PodView> pod) {
  const bool assumed = !pod.has_value();
  space::Side side = planned_side(options, plan, std::move(pod));
  if (assumed && !packet.interface.empty()) assume_interface(side.pod, packet.interface);
  return explain(packet, side.pod, side.live);
}

space::Side planned_side(const ApplyOptions& options, const Plan& plan, std::optional<PodView> pod) {
  const Choice choice = choose(options, plan.ruleset, false);
  return {pod ? with_routing(*std::move(pod), plan.routing) : assumed_pod(plan),
          {as_live(plan.ruleset, choice.order.front())}};
}

std::vector<Live> live_rules(Survey survey, std::vector<std::string>& warnings) {
  // "No rules" would be a guess.
  if (const Unreadable* place = first_unreadable(survey)) throw place->why;
  for (const BackendKind kind : all_backends) {
    const auto* unreadable = std::get_if<Unreadable>(&survey.of(kind));
    if (unreadable != nullptr) {
      warnings.push_back(std::string(unreadable->why.what()) +
                         ": its tables, which cannot hold rules of the sidecar, were not read");
    }
  }
  if (std::string problem = settings_problem(); !problem.empty()) warnings.push_back(std::move(problem));
  std::vector<Live> found = effective_rulesets(std::move(survey));
  std::erase_if(found, [](const Live& live) { return !holds_rules(live); });
  std::ranges::reverse(found);  // the backends as people think of them: what comes first is the newest
  return found;
}

}  // namespace sidetrack
