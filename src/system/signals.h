// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

namespace sidetrack {

// While it lives, signals wait in the calling thread, and in those that it starts: what has been begun is finished or
// rolled back first. (What a fault of the program raises is not held.)
class HeldSignals {
 public:
  enum class Which : std::uint8_t {
    polite,  // SIGTERM, SIGINT, SIGHUP, SIGQUIT: in another program's process, which handles its own timers and
             // children
    all,     // whatever could end the program: in our own
  };
  explicit HeldSignals(Which which) {
    sigset_t held;
    if (which == Which::all) {
      sigfillset(&held);
      sigdelset(&held, SIGSYS);  // a call that the sandbox refuses: held, it would end the program
    } else {
      sigemptyset(&held);
      for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigaddset(&held, signal);
    }
    pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_{};
};

// While it lives, the signals that ask a program to end come only while it waits, and end the waiting, not the program:
// as process 1 of a container, too, which a signal that it does not handle would not reach. One that comes at another
// time waits until then, and does what it did before once this object is gone. Those that are ignored stay so (nohup).
// For a program of one thread, and one object at a time.
class AwaitedSignals {
 public:
  using Clock = std::chrono::steady_clock;

  enum class Which : std::uint8_t {
    polite,  // SIGTERM, SIGINT, SIGHUP, SIGQUIT
    // All that end a program and can be held, SIGPIPE and those for real time, too; what stops it (Ctrl-Z, the terminal
    // of a job in the background) is without effect meanwhile. Not SIGKILL and SIGSTOP, nor SIGSYS, which is the
    // sandbox's, nor the two that the C library keeps for itself (32, 33). What a fault of the program raises ends it.
    all,
  };
  explicit AwaitedSignals(Which which = Which::polite);  // throws Error (failed)
  ~AwaitedSignals();
  AwaitedSignals(const AwaitedSignals&) = delete;
  AwaitedSignals& operator=(const AwaitedSignals&) = delete;

  // Waits until then, for a signal, or for something to be read from a descriptor.
  struct Woken {
    int signal = 0;         // 0: none has come
    bool readable = false;  // or at its end
  };
  [[nodiscard]] Woken wait(Clock::time_point until, int descriptor = -1);

 private:
  struct Before {
    int signal;
    struct sigaction action;
  };
  std::vector<Before> before_;
  sigset_t mask_{};
};

// "SIGTERM", "signal 40"
[[nodiscard]] std::string signal_name(int signal);

}  // namespace sidetrack
