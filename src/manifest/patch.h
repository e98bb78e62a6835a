// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>

#include "manifest/node.h"

namespace sidetrack::manifest {

inline constexpr std::string_view no_patch = "[]";

// What makes `before` to `after`, as JSON Patch (RFC 6902): a list of
// {"op": "add"|"remove"|"replace", "path", "value"}.
[[nodiscard]] std::string patch(const Node& before, const Node& after);

}  // namespace sidetrack::manifest
