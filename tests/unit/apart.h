// SPDX-License-Identifier: GPL-2.0-or-later
// What changes the process itself, in one of its own.
#pragma once

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <string>

#include "system/worker.h"

namespace sidetrack::testing {

// What `act` returns there; or the signal that ended it, or the system call that its sandbox refused.
inline std::string apart(const std::function<std::string()>& act) {
  const WorkerResult result = run_in_children({act}, std::chrono::minutes(1)).front();
  if (result.refused_call) return fmt::format("refused call {}", *result.refused_call);
  return result.signal != 0 ? fmt::format("signal {}", result.signal) : result.answer;
}

struct Ids {
  unsigned uid;
  unsigned gid;
};

// What the caller was outside of its new user namespace is this inside.
inline void map_ids(Ids outside, Ids inside) {
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << fmt::format("{} {} 1\n", inside.uid, outside.uid);
  std::ofstream("/proc/self/gid_map") << fmt::format("{} {} 1\n", inside.gid, outside.gid);
}

// Enters such new namespaces (CLONE_NEWNET, …), as root there. False: the machine does not let this user.
inline bool enter_new(int namespaces) {
  const Ids outside{geteuid(), getegid()};
  if (unshare(namespaces) == 0) return true;
  if (unshare(CLONE_NEWUSER | namespaces) != 0) return false;
  map_ids(outside, {0, 0});
  return true;
}

}  // namespace sidetrack::testing
