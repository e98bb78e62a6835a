// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/awaited_signals.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "model/error.h"

namespace sidetrack {
namespace {

volatile std::sig_atomic_t awaited_signal = 0;

extern "C" void on_awaited_signal(int signal) { awaited_signal = signal; }

}  // namespace

AwaitedSignals::AwaitedSignals(std::initializer_list<int> more, std::initializer_list<int> ignored) {
  awaited_signal = 0;
  std::vector<int> awaited{SIGTERM, SIGINT, SIGHUP, SIGQUIT};
  awaited.insert(awaited.end(), more);
  sigset_t blocked;
  sigemptyset(&blocked);
  for (const int signal : awaited) sigaddset(&blocked, signal);
  if (sigprocmask(SIG_BLOCK, &blocked, &mask_) != 0) throw system_error(errno, "cannot hold signals back");
  const auto handle = [&](int signal, void (*handler)(int)) {
    struct sigaction action {};
    action.sa_handler = handler;
    sigfillset(&action.sa_mask);  // the first one counts
    Before& before = before_.emplace_back();
    before.signal = signal;
    if (sigaction(signal, nullptr, &before.action) == 0 && before.action.sa_handler != SIG_IGN)
      sigaction(signal, &action, nullptr);
  };
  for (const int signal : awaited) handle(signal, on_awaited_signal);
  for (const int signal : ignored) handle(signal, SIG_IGN);
}

AwaitedSignals::~AwaitedSignals() {
  for (const Before& before : before_) sigaction(before.signal, &before.action, nullptr);
  sigprocmask(SIG_SETMASK, &mask_, nullptr);
}

AwaitedSignals::Woken AwaitedSignals::wait(Clock::time_point until, int descriptor) {
  sigset_t open = mask_;
  for (const Before& before : before_) sigdelset(&open, before.signal);
  for (;;) {
    if (awaited_signal != 0) return {static_cast<int>(awaited_signal), false};
    const auto left = std::max(std::chrono::nanoseconds(0),
                               std::chrono::duration_cast<std::chrono::nanoseconds>(until - Clock::now()));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec time{static_cast<std::time_t>(seconds.count()), static_cast<long>((left - seconds).count())};
    pollfd watched{descriptor, POLLIN, 0};  // a negative descriptor is none
    const int count = ppoll(&watched, 1, &time, &open);
    if (count < 0 && errno != EINTR) throw system_error(errno, "cannot wait");
    if (count > 0) return {0, true};
    if (count == 0 && awaited_signal == 0) return {};
  }
}

std::string_view signal_name(int signal) {
  struct Name {
    int signal;
    std::string_view name;
  };
  constexpr Name names[] = {
      {SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}, {SIGHUP, "SIGHUP"}, {SIGQUIT, "SIGQUIT"}, {SIGUSR1, "SIGUSR1"}};
  const auto* found = std::ranges::find(names, signal, &Name::signal);
  return found != std::end(names) ? found->name : "a signal";
}

}  // namespace sidetrack
