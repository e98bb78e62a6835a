// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <string_view>
#include <thread>
#include <utility>

#include "model/error.h"
#include "model/scan.h"
#include "system/descriptor.h"
#include "system/sandbox.h"
#include "system/write_all.h"

namespace sidetrack {
namespace {

using Clock = std::chrono::steady_clock;

[[maybe_unused]] constexpr rlim_t most_memory = 512U << 20;
constexpr std::size_t longest_answer = 1U << 20;
constexpr unsigned most_workers = 8;
constexpr int status_of_refused = 3;  // its answer is the number of a system call

struct Worker {
  pid_t pid = 0;
  Descriptor answer;
  std::size_t task = 0;
  Clock::time_point start;
};

[[noreturn]] void work(const std::function<std::string()>& task, int answer, pid_t parent) {
  // Should the parent end, nothing is begun any more; what has been begun is finished first (HeldSignals).
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
#if !defined(SIDETRACK_SANITIZED)  // which takes terabytes of address space
  const rlimit memory{most_memory, most_memory};
  setrlimit(RLIMIT_AS, &memory);
#endif
  try {
    const std::string answered = task();
    const auto call = refused_call();
    static_cast<void>(write_all(answer, call ? std::to_string(*call) : answered));
    if (call) _exit(status_of_refused);
  } catch (...) {  // the answer is cut
  }
  _exit(0);
}

Worker start(const std::vector<std::function<std::string()>>& tasks, std::size_t task) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw system_error(errno, "cannot make a pipe");
  Worker worker{0, Descriptor(ends[0]), task, Clock::now()};
  const Descriptor theirs(ends[1]);
  const pid_t parent = getpid();
  worker.pid = fork();
  if (worker.pid < 0) throw system_error(errno, "cannot make a process");
  if (worker.pid == 0) work(tasks[task], theirs.get(), parent);
  return worker;
}

// One that waits for a file system that never answers cannot be waited for: it is left to init.
void stop(const Worker& worker) {
  kill(worker.pid, SIGKILL);
  waitpid(worker.pid, nullptr, WNOHANG);
}

// Whether it has ended.
bool read_answer(const Worker& worker, WorkerResult& result) {
  char buffer[1 << 14];
  const ssize_t size = read(worker.answer.get(), buffer, sizeof buffer);
  if (size < 0 && errno == EINTR) return false;
  if (size > 0 && result.answer.size() < longest_answer) {
    result.answer.append(buffer, static_cast<std::size_t>(size));
    return false;
  }
  if (size > 0) kill(worker.pid, SIGKILL);
  int status = 0;
  while (waitpid(worker.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  if (WIFEXITED(status) && WEXITSTATUS(status) == status_of_refused)
    result.refused_call = to_number<int>(std::exchange(result.answer, ""));
  return true;
}

}  // namespace

std::vector<WorkerResult> in_workers(const std::vector<std::function<std::string()>>& tasks,
                                     std::chrono::milliseconds timeout) {
  const std::size_t at_a_time = std::clamp(std::thread::hardware_concurrency(), 1U, most_workers);
  std::vector<WorkerResult> results(tasks.size());
  std::vector<Worker> running;
  std::size_t next = 0;
  while (next < tasks.size() || !running.empty()) {
    while (next < tasks.size() && running.size() < at_a_time) {
      try {
        running.push_back(start(tasks, next));
      } catch (const std::exception&) {
        std::ranges::for_each(running, stop);
        throw;
      }
      ++next;
    }
    // They have begun in this order.
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(running.front().start + timeout - Clock::now());
    std::vector<pollfd> ready;
    for (const Worker& worker : running) ready.push_back({worker.answer.get(), POLLIN, 0});
    const int count = poll(ready.data(), ready.size(), std::max(0, static_cast<int>(left.count())));
    if (count < 0 && errno != EINTR) throw system_error(errno, "cannot wait for processes");
    for (std::size_t i = running.size(); i-- > 0;) {
      WorkerResult& result = results[running[i].task];
      const bool ended = count > 0 && ready[i].revents != 0 && read_answer(running[i], result);
      const auto took = Clock::now() - running[i].start;
      if (!ended && took >= timeout) {
        stop(running[i]);
        result.timed_out = true;
      }
      if (!ended && !result.timed_out) continue;
      result.took = took;
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return results;
}

}  // namespace sidetrack
