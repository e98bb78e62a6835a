// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <csignal>
#include <cstdint>

namespace sidetrack {

// While it lives, signals wait in the calling thread, and in those that it starts: what has been begun is finished or
// rolled back first. (What a fault of the program raises is not held.)
class HeldSignals {
 public:
  enum class Which : std::uint8_t {
    polite,  // SIGTERM, SIGINT, SIGHUP, SIGQUIT: in a program of others, whose timers and children are its own affair
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

}  // namespace sidetrack
