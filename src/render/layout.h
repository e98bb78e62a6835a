// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mesh/catalogue.h"

namespace sidetrack {

// "10000" with separators, for people: "10,000".
[[nodiscard]] std::string grouped(std::uint64_t number);

// One word as a shell takes it: in quotes if it has to be.
[[nodiscard]] std::string shell_quoted(std::string_view word);

// "-x 10.0.0.0/8", as it is given in a shell: a bare * in quotes.
[[nodiscard]] std::string shell_words(const Reason& reason);

// "all other outbound TCP goes to the proxy (-i '*')"
[[nodiscard]] std::string reason_words(const Reason& reason);

enum class Style : unsigned char { plain, bold, dim, green, red, yellow, cyan };

// ANSI escapes around the text, if `color`.
[[nodiscard]] std::string styled(std::string_view text, Style style, bool color);

}  // namespace sidetrack
