// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/error.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace sidetrack {

std::string errno_words(int errno_value) {
  const char* words = strerrordesc_np(errno_value);
  const char* name = strerrorname_np(errno_value);
  if (words == nullptr || name == nullptr) return "error " + std::to_string(errno_value);
  return std::string(words) + " (" + name + ")";
}

Error system_error(int errno_value, const std::string& message, ExitCode code, std::string hint) {
  const bool refused = errno_value == EPERM || errno_value == EACCES;
  // Another process, or a lack that passes: the same may work a moment later.
  const bool passes = errno_value == EBUSY || errno_value == EAGAIN;
  return {refused  ? ExitCode::not_permitted
          : passes ? ExitCode::busy
                   : code,
          message + ": " + errno_words(errno_value), std::move(hint)};
}

std::string text_with_hint(const Error& error) {
  return error.hint().empty() ? error.what() : fmt::format("{}; {}", error.what(), error.hint());
}

}  // namespace sidetrack
