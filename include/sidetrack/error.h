// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace sidetrack {

// What the program exits with. The numbers are part of the command line: scripts test them.
enum class ExitCode : int {
  done = 0,
  failed = 1,
  usage = 2,               // wrong usage or bad input; nothing was touched
  kernel_lacks = 3,        // the kernel has no support for something that was asked for
  not_permitted = 4,       // a capability or a right is missing
  busy = 5,                // a lock is held, or another program changed the rules meanwhile
  differs = 6,             // verify, diff: the pod differs from the requested rules
  validation_failed = 126  // the number that Istio's CNI repair controller looks for
};

// What the functions of the library throw. Other exceptions are named where they can occur. what() is the full
// sentence: the value, what was expected. All text is copied.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message, std::string hint = {})
      : std::runtime_error(message), code_(code), hint_(std::move(hint)) {}

  // Returns what the program would exit with.
  [[nodiscard]] ExitCode code() const noexcept { return code_; }
  // Returns what to do about it; empty if nothing is known. It lives as long as the error.
  [[nodiscard]] const std::string& hint() const noexcept { return hint_; }

  // Tells whether it is one backend that cannot hold the rules, for a reason that what() names (an extension, a table,
  // an id): another backend may. What concerns all of them (a right, memory, routing) is not of this kind.
  [[nodiscard]] bool of_one_backend() const noexcept { return of_one_backend_; }
  // Returns a copy for which of_one_backend() is true.
  [[nodiscard]] Error as_of_one_backend() const {
    Error error = *this;
    error.of_one_backend_ = true;
    return error;
  }

 private:
  ExitCode code_;
  std::string hint_;
  bool of_one_backend_ = false;
};

}  // namespace sidetrack
