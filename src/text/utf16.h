// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>

namespace sidetrack {

// Returns a text in UTF-16 that begins with a byte order mark, as PowerShell's `>` writes it, in UTF-8; any other text
// as it is. Half of a surrogate pair becomes U+FFFD.
[[nodiscard]] std::string without_utf16(std::string text);

}  // namespace sidetrack
