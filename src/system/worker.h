// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sidetrack {

// A process that fork(2) has made. With this object it is ended, if it has not ended by itself, and waited for: none is
// left running, and none as a zombie, whatever is thrown. One that waits for a file system which never answers cannot
// be ended: it is waited for when a later one is.
class Child {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Child(pid_t pid) : pid_(pid) {}
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  Child& operator=(Child&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }
  ~Child() { end(); }

  // Waits until it has ended. Returns its status as waitpid(2) gives it: 0 if somebody else has taken that, as a
  // handler of SIGCHLD may. Nothing if it has not ended by then.
  [[nodiscard]] std::optional<int> wait(Clock::time_point until);

  // Kills it.
  void end() noexcept;

 private:
  pid_t pid_;  // 0: it has ended
};

struct WorkerResult {
  std::string answer;               // what the task returned; empty if it did not return
  bool timed_out = false;           // it was killed
  int signal = 0;                   // that ended it otherwise
  std::optional<int> refused_call;  // by its sandbox: then there is no answer
  std::chrono::nanoseconds took{};
};

// Each task in a process of its own, as many at a time as there are processors, for what may hang, enter namespaces, or
// take more memory than a machine has: none may take longer than `timeout`, or more than half a gigabyte. To be called
// by a process of one thread. The results are in the order of the tasks. Throws Error (failed) if no process can be
// made. `file`: the one descriptor that is left to a task which may not end: nobody is to wait for others that it has.
[[nodiscard]] std::vector<WorkerResult> run_in_children(const std::vector<std::function<std::string()>>& tasks,
                                                        std::chrono::milliseconds timeout,
                                                        std::optional<int> file = {});

}  // namespace sidetrack
