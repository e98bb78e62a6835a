// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <vector>

#include "support/file_descriptor.h"
#include "support/namespace.h"

namespace sidetrack::netns {

// A user namespace and a network namespace that it owns, as a pod with `hostUsers: false` has them: 65536 ids, which
// are others outside.
class UserNamespace {
 public:
  UserNamespace();

  // What a user of inside is outside.
  static constexpr unsigned first_outside = 10 * 65536;
  [[nodiscard]] static Identity outside(unsigned id) { return {first_outside + id, first_outside + id}; }

  // Another descriptor of the network namespace.
  [[nodiscard]] Namespace network() const;

  // The words that run a program inside both, as root there.
  [[nodiscard]] std::vector<std::string> inside(std::vector<std::string> words) const;

 private:
  FileDescriptor user_;
  FileDescriptor net_;
};

}  // namespace sidetrack::netns
