// SPDX-License-Identifier: GPL-2.0-or-later
// Which options, or values of options, make no difference to any packet.
#pragma once

#include <vector>

#include "lint/comparison.h"
#include "lint/lint.h"

namespace sidetrack::lint {

// Options without effect, and values without effect of those that have one.
[[nodiscard]] Findings without_effect(const Subject& subject);
// Returns the options that rules which are there would be asked for by.
[[nodiscard]] std::vector<Option> options_of(const PodView& pod, const std::vector<Live>& live);

}  // namespace sidetrack::lint
