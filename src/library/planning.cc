// SPDX-License-Identifier: GPL-2.0-or-later
#include "library/planning.h"

#include "host/host.h"
#include "system/descriptor.h"

namespace sidetrack {

Plan plan_for(Config& config, const Names& names, const Place* place, bool dry_run) {
  Host host;
  host.may_lack_addresses = dry_run;
  if (place != nullptr && place->root) {
    // The pod's own files, not the node's.
    host.root = place->root->get();
    host.root_name = place->root_name;
  }
  const HostFacts facts = gather(config, names, host);
  return plan(config, facts);
}

}  // namespace sidetrack
