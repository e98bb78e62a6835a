// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/child.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "system/descriptor.h"

namespace sidetrack {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds to_die{100};  // once it is killed

// Those that could not be ended yet.
class LeftBehind {
 public:
  void add(pid_t pid) noexcept {
    const std::lock_guard lock(mutex_);
    try {
      pids_.push_back(pid);
    } catch (...) {  // no memory: it stays a zombie
    }
  }
  void wait() noexcept {
    const std::lock_guard lock(mutex_);
    std::erase_if(pids_, [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
  }

 private:
  std::mutex mutex_;
  std::vector<pid_t> pids_;
};
LeftBehind left_behind;

// Waits for a change of the process, at most that long. Linux 5.3 has descriptors of processes.
void wait_for_change(pid_t pid, milliseconds longest) {
  const Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid()) return std::this_thread::sleep_for(std::min(longest, milliseconds(1)));
  pollfd ended{process.get(), POLLIN, 0};
  poll(&ended, 1, static_cast<int>(longest.count()));
}

}  // namespace

Child::Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  return *this;
}

std::optional<int> Child::wait(Clock::time_point until) {
  while (pid_ > 0) {
    int status = 0;
    const pid_t ended = waitpid(pid_, &status, WNOHANG);
    if (ended < 0 && errno == EINTR) continue;
    if (ended != 0) {
      pid_ = 0;
      return ended > 0 ? status : 0;
    }
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now());
    if (left.count() <= 0) return std::nullopt;
    wait_for_change(pid_, left);
  }
  return 0;
}

void Child::end() noexcept {
  if (pid_ <= 0) return;
  // Not one that has ended, and whose number may be another's by now.
  if (!wait(Clock::now())) {
    kill(pid_, SIGKILL);
    if (!wait(Clock::now() + to_die)) left_behind.add(std::exchange(pid_, 0));
  }
  left_behind.wait();
}

}  // namespace sidetrack
