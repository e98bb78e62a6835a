// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/signals.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "model/error.h"

namespace sidetrack {
namespace {

volatile std::sig_atomic_t awaited_signal = 0;

extern "C" void on_awaited_signal(int signal) { awaited_signal = signal; }

constexpr timespec no_time{};
constexpr int without_effect[] = {SIGCHLD, SIGWINCH, SIGURG, SIGCONT};  // unless somebody handles them
constexpr int stops[] = {SIGTSTP, SIGTTIN, SIGTTOU};

bool is_among(const auto& signals, int signal) { return std::ranges::find(signals, signal) != std::end(signals); }

std::vector<int> signals_that_end() {
  std::vector<int> all;
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    const bool is_of_libc = signal >= __SIGRTMIN && signal < SIGRTMIN;
    // SIGSYS is the sandbox's: held, a call that is refused would end the program.
    if (signal == SIGKILL || signal == SIGSTOP || signal == SIGSYS || is_of_libc) continue;
    if (!is_among(without_effect, signal) && !is_among(stops, signal)) all.push_back(signal);
  }
  return all;
}

}  // namespace

AwaitedSignals::AwaitedSignals(Which which) {
  awaited_signal = 0;
  const std::vector<int> awaited =
      which == Which::all ? signals_that_end() : std::vector<int>{SIGTERM, SIGINT, SIGHUP, SIGQUIT};
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
    if (sigaction(signal, nullptr, &before.action) != 0) return;
    // These are ignored by the program itself, which asks each write.
    const bool by_us = signal == SIGPIPE || signal == SIGXFSZ;
    if (before.action.sa_handler != SIG_IGN || (which == Which::all && by_us)) sigaction(signal, &action, nullptr);
  };
  for (const int signal : awaited) handle(signal, on_awaited_signal);
  if (which == Which::polite) return;
  for (const int signal : stops) handle(signal, SIG_IGN);
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
    // ppoll lets no signal in where something can be read: input without an end must keep neither them nor the end
    // away.
    if (count > 0 && ppoll(nullptr, 0, &no_time, &open) == 0) return {0, Clock::now() < until};
    if (count == 0 && awaited_signal == 0) return {};
  }
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

}  // namespace sidetrack
