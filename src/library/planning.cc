// SPDX-License-Identifier: GPL-2.0-or-later
#include "library/planning.h"

#include "host/host.h"
#include "system/descriptor.h"

namespace sidetrack {

HostFacts facts_for(Config& config, const Names& names, const Place* place, bool dry_run) {
  Host host;
  host.may_lack_addresses = dry_run;
  if (place != nullptr && place->root) {
    // The pod's own files, not the node's.
    host.root = place->root->get();
    host.root_name = place->root_name;
  }
  return gather(config, names, host);
}

Plan plan_for(Config& config, const Names& names, const Place* place, bool dry_run) {
  const HostFacts facts = facts_for(config, names, place, dry_run);
  return plan(config, facts);
}

}  // namespace sidetrack
