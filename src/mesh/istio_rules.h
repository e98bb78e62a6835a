// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/mesh_rules.h"

namespace sidetrack {

// Istio's rules, and Sidetrack's, as the backends of the kernel ask for them.
extern const MeshRules istio_rules;

// Whether a rule of ours goes to the front of its chain (-I). What the kernel does not keep, its row tells.
[[nodiscard]] bool came_by_insert(const Rule& rule);

}  // namespace sidetrack
