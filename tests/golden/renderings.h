// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <map>
#include <string>

#include "golden/scenario.h"
#include "mesh/plan.h"
#include "options/options.h"

namespace sidetrack {

struct Planned {
  CommandLine line;
  Plan plan;
};

// The plan of a scenario, made as the program makes it, without asking the host anything.
[[nodiscard]] Planned planned(const Scenario& scenario);

// File name in the scenario's folder → text. A rendering that is empty has no file.
[[nodiscard]] std::map<std::string, std::string> renderings(const Scenario& scenario);

}  // namespace sidetrack
