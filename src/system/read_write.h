// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sidetrack {

// Reads everything up to the end of the file, pipe or terminal behind the descriptor, at most `most` bytes. Returns 0,
// or errno; EFBIG if there is more.
[[nodiscard]] int read_all(int file, std::size_t most, std::string& text);

// Does the same for the file that the user names by a path; "-": standard input.
[[nodiscard]] int read_named(const std::string& path, std::size_t most, std::string& text);

// Returns the text of a file of /proc; empty if it cannot be read.
[[nodiscard]] std::string read_small(const std::string& path);

// Returns the name of a process, /proc/PID/comm; empty if it is gone or not to be seen.
[[nodiscard]] std::string process_name(std::uint32_t pid);

// Writes all of the bytes to a descriptor, in as many writes as it takes. Returns 0, or the errno of the write that
// failed.
int write_all(int descriptor, std::string_view bytes);

}  // namespace sidetrack
