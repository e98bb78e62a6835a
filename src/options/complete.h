// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sidetrack {

// Completes a command line for the scripts in completions/, which call `sidetrack __complete WORD...`. Takes the words
// from the program's name to the one being typed. Returns lines with tabs in them: "words", or "list" if a comma may
// follow, or "files" if paths are offered too, and the part of the typed word that stays; then what can follow that
// part, and its description.
[[nodiscard]] std::string complete(std::span<const std::string_view> words);

}  // namespace sidetrack
