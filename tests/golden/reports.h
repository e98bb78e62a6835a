// SPDX-License-Identifier: GPL-2.0-or-later
// What is said of rules that were pasted into a report: notes, show, explain, map.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace sidetrack {

// By the files of the answers, of each text in tests/golden/reports.
[[nodiscard]] std::map<std::filesystem::path, std::string> answers_about_reports();

}  // namespace sidetrack
