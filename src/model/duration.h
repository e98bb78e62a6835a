// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
#include <string>

namespace sidetrack {

// "0.2 s", "60 s"; above two minutes "5m", "1h2m3s", as the command line takes it.
[[nodiscard]] std::string duration_words(std::chrono::nanoseconds time);

}  // namespace sidetrack
