// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "manifest/node.h"

namespace sidetrack::manifest {

// What makes `before` to `after`, as JSON Patch (RFC 6902): a list of {"op": "add"|"remove"|"replace", "path",
// "value"}.
[[nodiscard]] Node patch(const Node& before, const Node& after);

}  // namespace sidetrack::manifest
