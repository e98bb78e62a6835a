// SPDX-License-Identifier: GPL-2.0-or-later
// What changes the process itself, in one of its own.
#pragma once

#include <fmt/format.h>
#include <sched.h>

#include <chrono>
#include <functional>
#include <string>

#include "system/worker.h"

namespace sidetrack::testing {

// What `act` returns there; or the signal that ended it, or the system call that its sandbox refused.
inline std::string apart(const std::function<std::string()>& act) {
  const WorkerResult result = in_workers({act}, std::chrono::minutes(1)).front();
  if (result.refused_call) return fmt::format("refused call {}", *result.refused_call);
  return result.signal != 0 ? fmt::format("signal {}", result.signal) : result.answer;
}

// Enters such new namespaces (CLONE_NEWNET, …), as root there. False: the machine does not let this user.
inline bool enter_new(int namespaces) { return unshare(namespaces) == 0 || unshare(CLONE_NEWUSER | namespaces) == 0; }

}  // namespace sidetrack::testing
