// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <csignal>

namespace sidetrack {

// While it lives, the signals that ask a program to end wait: what has been begun is finished or rolled back first.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t outcome;
    sigemptyset(&outcome);
    for (int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigaddset(&outcome, signal);
    sigprocmask(SIG_BLOCK, &outcome, &before_);
  }
  ~HeldSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace sidetrack
