// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <span>
#include <string>

#include "rule/live.h"

namespace sidetrack {

// Which releases of Istio write what is ours there, where an older one tells itself by its rules: "Istio 1.18 to 1.22".
// Empty for rules that one of today, or Sidetrack, may have written, and where there is nothing to tell by.
[[nodiscard]] std::string older_release(std::span<const Live> live);

// Returns the earliest minor release that may have written what is ours: 5 for Istio 1.5; and the latest one, 99 for
// one of today, and where rules of several are mixed.
[[nodiscard]] unsigned earliest_release(std::span<const LiveChain> chains);
[[nodiscard]] unsigned latest_release(std::span<const LiveChain> chains);

// Returns the first minor release that writes such a rule.
[[nodiscard]] unsigned first_release(const Rule& rule);

}  // namespace sidetrack
