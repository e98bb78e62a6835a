// SPDX-License-Identifier: GPL-2.0-or-later
// From an errno of legacy iptables to what is missing and what to do about it.
#pragma once

#include "model/error.h"
#include "rule/mesh_rules.h"
#include "rule/ruleset.h"

namespace sidetrack::legacy {

// The table cannot be opened.
[[nodiscard]] Error cannot_open(int errno_value, Family family, Table table);

// The kernel refused the table with these rules in it (others are not looked at). It never says which rule it was:
// the extensions are asked for one by one.
[[nodiscard]] Error refused(int errno_value, Family family, Table table, const Ruleset& wanted, const MeshRules& mesh);

// What of these rules, which are not none, the kernel certainly lacks or forbids; throws it. Creates no table.
void require_extensions(Family family, const Ruleset& wanted, const MeshRules& mesh);
void require_capabilities();

// False: the kernel certainly has no legacy iptables for the family by now, so no table either.
[[nodiscard]] bool kernel_has_tables(Family family);

}  // namespace sidetrack::legacy
