// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <iterator>

#include "cli/commands.h"
#include "cli/log.h"
#include "library/packets.h"

namespace sidetrack::cli {

LiveRules read_live(Kernel& kernel) {
  Survey survey = kernel.survey();
  LiveRules live{{}, survey.routing};
  if (!survey.of_agents.empty()) {  // what belongs to an agent's rules
    std::ranges::copy_if(survey.others_routing.policy_rules, std::back_inserter(live.routing.policy_rules),
                         [](const PolicyRule& rule) { return is_of_ambient(rule); });
    std::ranges::copy_if(survey.others_routing.local_routes, std::back_inserter(live.routing.local_routes),
                         [](const LocalRoute& route) { return route.table == ztunnel_route_table; });
  }
  std::vector<std::string> unseen;
  live.rules = live_rules(std::move(survey), unseen);
  for (const std::string& warning : unseen) warn(warning);
  return live;
}

}  // namespace sidetrack::cli
