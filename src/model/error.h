// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <sidetrack/error.h>

#include <string>

namespace sidetrack {

// An Error for a failed system call: "MESSAGE: Operation not permitted (EPERM)". EPERM and EACCES become
// ExitCode::not_permitted, EBUSY and EAGAIN ExitCode::busy, everything else `code`.
[[nodiscard]] Error system_error(int errno_value, const std::string& message, ExitCode code = ExitCode::failed,
                                 std::string hint = {});

// Returns what() with the hint: "'x': expected a port; give one". Without a hint what() alone.
[[nodiscard]] std::string text_with_hint(const Error& error);

// "Operation not permitted (EPERM)"
[[nodiscard]] std::string errno_words(int errno_value);

}  // namespace sidetrack
