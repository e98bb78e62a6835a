// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <sidetrack/error.h>

#include <string>

namespace sidetrack {

// An Error for a failed system call: "MESSAGE: Operation not permitted (EPERM)". EPERM and EACCES become
// ExitCode::not_permitted, EBUSY and EAGAIN ExitCode::busy, everything else `code`.
[[nodiscard]] Error system_error(int errno_value, const std::string& message, ExitCode code = ExitCode::failed,
                                 std::string hint = {});

// "Operation not permitted (EPERM)"
[[nodiscard]] std::string errno_words(int errno_value);

}  // namespace sidetrack
