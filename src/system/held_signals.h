// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <csignal>

namespace sidetrack {

// While it lives, signals wait: what has been begun is finished or rolled back first. (What a fault of the program
// raises is not held.)
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGSYS);  // a call that the sandbox refuses: held, it would end the program
    sigprocmask(SIG_BLOCK, &all, &before_);
  }
  ~HeldSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace sidetrack
