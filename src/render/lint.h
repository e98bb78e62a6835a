// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

#include "lint/finding.h"

namespace sidetrack {

[[nodiscard]] std::string lint_text(const lint::Findings& findings, bool color);
[[nodiscard]] std::string lint_json(const lint::Findings& findings);

}  // namespace sidetrack
