// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>

namespace sidetrack {

// A process that fork(2) has made. With this object it is ended, if it has not ended by itself, and waited for: none is
// left running, and none as a zombie, whatever is thrown. One that waits for a file system which never answers cannot
// be ended: it is waited for when a later one is.
class Child {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Child(pid_t pid) : pid_(pid) {}
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child() { end(); }

  // Waits until it has ended. Returns its status as waitpid(2) gives it: 0 if somebody else has taken that, as a
  // handler of SIGCHLD may. Nothing if it has not ended by then.
  [[nodiscard]] std::optional<int> wait(Clock::time_point until);

  // Kills it.
  void end() noexcept;

 private:
  pid_t pid_;  // 0: it has ended
};

}  // namespace sidetrack
