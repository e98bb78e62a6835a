// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "model/error.h"
#include "model/scan.h"
#include "system/descriptor.h"
#include "system/read_write.h"
#include "system/sandbox.h"

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
namespace {

using Clock = std::chrono::steady_clock;

[[maybe_unused]] constexpr rlim_t most_memory = 512U << 20;
constexpr std::size_t longest_answer = 2U << 20;
constexpr unsigned most_workers = 8;
constexpr std::chrono::seconds to_end{1};  // once it has closed its end of the pipe

// What a worker says begins with one of these; nothing of it is believed beyond that.
constexpr char of_answer = 'a';   // its answer follows
constexpr char of_refusal = 'r';  // the number of a system call that its sandbox refused follows

// Ends with this object.
struct Worker {
  Child child;
  Descriptor answer;
  std::size_t task = 0;
  Clock::time_point start;
};

void close_all_but(int a, int b) {
  const auto low = static_cast<unsigned>(std::min(a, b));
  const auto high = static_cast<unsigned>(std::max(a, b));
  if (low > 0) close_range(0, low - 1, 0);
  if (high - low > 1) close_range(low + 1, high - 1, 0);
  close_range(high + 1, ~0U, 0);
}

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
    static_cast<void>(write_all(answer, call ? of_refusal + std::to_string(*call) : of_answer + answered));
  } catch (...) {  // the answer is cut
  }
  _exit(0);
}

// `beside`: those that run beside it, whose answers are not its own to read.
Worker start(const std::vector<std::function<std::string()>>& tasks, std::size_t task, std::vector<Worker>& beside,
             std::optional<int> file) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw system_error(errno, "cannot make a pipe");
  Descriptor ours(ends[0]);
  const Descriptor theirs(ends[1]);
  const auto begin = Clock::now();
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw system_error(errno, "cannot make a process");
  if (pid == 0) {
    ours = Descriptor();
    for (Worker& other : beside) other.answer = Descriptor();
    if (file) close_all_but(theirs.get(), *file);
    work(tasks[task], theirs.get(), parent);
  }
  return {Child(pid), std::move(ours), task, begin};
}

// Takes what it has said in the end.
void finish(Worker& worker, WorkerResult& result) {
  const auto status = worker.child.wait(Clock::now() + to_end);
  if (status && WIFSIGNALED(*status)) result.signal = WTERMSIG(*status);
  const std::string said = std::exchange(result.answer, "");
  if (said.starts_with(of_answer)) result.answer = said.substr(1);
  if (said.starts_with(of_refusal)) result.refused_call = to_number<int>(std::string_view(said).substr(1));
}

// Returns whether it has ended. One that says too much has said nothing.
bool read_answer(Worker& worker, WorkerResult& result) {
  char buffer[1 << 14];
  const ssize_t size = read(worker.answer.get(), buffer, sizeof buffer);
  if (size < 0 && errno == EINTR) return false;
  if (size > 0 && result.answer.size() < longest_answer) {
    result.answer.append(buffer, static_cast<std::size_t>(size));
    return false;
  }
  if (size > 0) {
    worker.child.end();
    result.answer.clear();
  }
  finish(worker, result);
  return true;
}

}  // namespace

std::vector<WorkerResult> run_in_children(const std::vector<std::function<std::string()>>& tasks,
                                          std::chrono::milliseconds timeout, std::optional<int> file) {
  const std::size_t at_a_time = std::clamp(std::thread::hardware_concurrency(), 1U, most_workers);
  std::vector<WorkerResult> results(tasks.size());
  std::vector<Worker> running;
  std::size_t next = 0;
  while (next < tasks.size() || !running.empty()) {
    while (next < tasks.size() && running.size() < at_a_time) {
      running.push_back(start(tasks, next, running, file));
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
        result.timed_out = true;
        result.answer.clear();
      }
      if (!ended && !result.timed_out) continue;
      result.took = took;
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return results;
}

}  // namespace sidetrack
