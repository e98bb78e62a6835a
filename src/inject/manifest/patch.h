// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "inject/manifest/node.h"

namespace sidetrack::manifest {

inline constexpr std::string_view no_patch = "[]";

// The API server stores no object of more than 1.5 MiB (etcd's --max-request-bytes).
inline constexpr std::size_t largest_patch = 2U << 20;  // bytes

// What makes `before` to `after`, as JSON Patch (RFC 6902): a list of
// {"op": "add"|"remove"|"replace", "path", "value"}. nullopt if it would be longer than `most` bytes.
[[nodiscard]] std::optional<std::string> patch(const Node& before, const Node& after, std::size_t most = largest_patch);

}  // namespace sidetrack::manifest
