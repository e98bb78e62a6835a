// SPDX-License-Identifier: GPL-2.0-or-later
// What is said of the rules of a scenario: explain, map, lint, show, diff; and of the options.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "golden/scenario.h"

namespace sidetrack {

// The scenarios that have a file in tests/golden/answers.
[[nodiscard]] const std::vector<Scenario>& answered();
[[nodiscard]] std::filesystem::path answers_file(const Scenario& scenario);
[[nodiscard]] std::string answers(const Scenario& scenario);

// What the table of options becomes, by the name of its file there: help and the manual page; and what is
// drawn.
[[nodiscard]] std::map<std::filesystem::path, std::string> pages_and_drawings();

}  // namespace sidetrack
