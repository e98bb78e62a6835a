// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

#include "support/namespace.h"

namespace sidetrack::netns {

// All by which a look at the namespace could be noticed: rules, handles, counters, the legacy tables that are alive,
// the generation of nf_tables, policy rules, routes, addresses.
[[nodiscard]] std::string trace(const Namespace& where);

// A lock file for legacy iptables that is not there.
[[nodiscard]] std::string absent_lock_file();

}  // namespace sidetrack::netns
