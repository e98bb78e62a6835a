// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/commands.h"
#include "cli/log.h"
#include "library/packets.h"

namespace sidetrack::cli {

LiveRules read_live(Kernel& kernel) {
  Survey survey = kernel.survey();
  LiveRules live{{}, survey.routing};
  std::vector<std::string> unseen;
  live.rules = live_rules(std::move(survey), unseen);
  for (const std::string& warning : unseen) warn(warning);
  return live;
}

}  // namespace sidetrack::cli
