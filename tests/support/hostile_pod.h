// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <sys/types.h>

#include <string>

#include "support/namespace.h"

namespace sidetrack::netns {

// A process with a network namespace and a root of its own, as a pod's are, whose owner put into that root what he
// liked. The root is an empty folder but for etc, run and proc, which is mounted.
class HostilePod {
 public:
  // With `silent_file_system`, a file system in user space is mounted at /hang that never answers.
  explicit HostilePod(const Namespace& network, bool silent_file_system = false);
  ~HostilePod();
  HostilePod(const HostilePod&) = delete;
  HostilePod& operator=(const HostilePod&) = delete;

  [[nodiscard]] std::string pid() const { return std::to_string(pid_); }
  // Where a path of the pod is from outside, as far as no mount of the pod is in the way.
  [[nodiscard]] std::string path(const std::string& inside) const { return root_ + inside; }

 private:
  std::string root_;
  pid_t pid_ = 0;
};

}  // namespace sidetrack::netns
