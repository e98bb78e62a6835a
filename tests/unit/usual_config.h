// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "model/config.h"
#include "pod/routing.h"

namespace sidetrack {

// The options that are always there, as they are when none is given.
inline Config usual() {
  Config config;
  config.proxy_uids = {1337};
  config.proxy_gids = {1337};
  config.loopback_ipv4 = *AddressRange::parse("127.0.0.1/32");
  config.owner_groups.all = true;
  return config;
}

// What the injector passes.
inline Config injected() {
  Config config = usual();
  config.inbound_ports.all = true;
  config.inbound_exclude_ports = {15090, 15021, 15020};
  config.outbound_ranges.all = true;
  return config;
}

inline HostFacts dual_stack() {
  HostFacts facts;
  facts.families = Families::both();
  return facts;
}

// ip rule add pref PRIORITY …
inline PolicyRule placed(PolicyRule rule, std::uint32_t priority, bool before_others) {
  rule.priority = priority;
  rule.before_others = before_others;
  return rule;
}

}  // namespace sidetrack
