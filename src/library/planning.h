// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "mesh/plan.h"
#include "model/config.h"
#include "system/namespaces.h"

namespace sidetrack {

// What the host says, and the plan of the options. Both complete `config` by what only the host says: the files are
// those of the process that the place is of, else this process's. The addresses are those of the network namespace that
// the calling thread is in. Throws as gather() does (host.h); with `dry_run` the pod may lack addresses.
[[nodiscard]] HostFacts facts_for(Config& config, const Names& names, const Place* place, bool dry_run);
[[nodiscard]] Plan plan_for(Config& config, const Names& names, const Place* place, bool dry_run);

}  // namespace sidetrack
