// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

#include "evaluate/explain.h"

namespace sidetrack {

struct TextOptions {
  bool color = false;
  bool all = false;  // every rule; otherwise long runs of rules that do not match for the same reason are one line
};
[[nodiscard]] std::string text(const Trace& trace, const TextOptions& options);
[[nodiscard]] std::string json(const Trace& trace);

}  // namespace sidetrack
