// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace sidetrack {

// What the process ends with. The numbers are part of the command line: scripts test them.
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

// What the functions of the library throw. Other exceptions are named where they can occur.
// `what()` is the full sentence: the value, what was expected. `hint()` says what to do, or is empty. `code()` is what
// the program would exit with.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message, std::string hint = {})
      : std::runtime_error(message), code_(code), hint_(std::move(hint)) {}

  [[nodiscard]] ExitCode code() const noexcept { return code_; }
  [[nodiscard]] const std::string& hint() const noexcept { return hint_; }

  // One backend cannot hold the rules, for a reason that what() names (an extension, a table, an id): another backend
  // may. What concerns all of them (a right, memory, routing) is not of this kind.
  [[nodiscard]] bool of_one_backend() const noexcept { return of_one_backend_; }
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
