// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <string>

namespace sidetrack {

// Everything up to the end of the file, pipe or terminal behind the descriptor, at most `most` bytes. Returns 0, or
// errno; EFBIG if there is more.
[[nodiscard]] int read_all(int file, std::size_t most, std::string& text);

}  // namespace sidetrack
