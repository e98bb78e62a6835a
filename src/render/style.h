// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>

namespace sidetrack {

enum class Style : unsigned char { plain, bold, dim, green, red, yellow, cyan };

// ANSI escapes around the text, if `color`.
[[nodiscard]] std::string styled(std::string_view text, Style style, bool color);

}  // namespace sidetrack
