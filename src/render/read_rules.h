// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <utility>

#include "space/regions.h"

namespace sidetrack {

// The rules of two files, each as `render --format json` or `show --json` has written it ("-": standard input), in pods
// of documentation addresses that have the interfaces which either names. Throws Error (usage) for what is no such
// file.
[[nodiscard]] std::pair<space::Side, space::Side> read_sides(const std::string& one, const std::string& other);

}  // namespace sidetrack
