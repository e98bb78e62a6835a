// SPDX-License-Identifier: GPL-2.0-or-later
// One backend on the real kernel.
#pragma once

#include <memory>

#include "model/error.h"
#include "support/backends.h"
#include "support/kernel_test.h"
#include "support/namespace.h"

namespace sidetrack::netns {

// The error that `act` ends with, called in the namespace; of code done if it ends with none.
template <typename Act>
[[nodiscard]] Error error_in(const Namespace& space, Act act, Identity identity = {}) {
  return space.run(
      [&] {
        try {
          act();
        } catch (const Error& error) {
          return error;
        }
        return Error(ExitCode::done, "no error");
      },
      identity);
}

class BackendTest : public KernelTest {
 protected:
  using Open = std::unique_ptr<Backend> (*)();
  explicit BackendTest(Open open) : open_(open) {}

  void commit(const Namespace& space, const Ruleset& wanted) const {
    space.run([&] {
      const auto backend = open_();
      backend->replace(backend->read(), wanted);
    });
  }
  [[nodiscard]] Live read(const Namespace& space) const {
    return space.run([&] { return open_()->read(); });
  }
  // Of `act`, which is given the backend.
  template <typename Act>
  [[nodiscard]] Error error_of(const Namespace& space, Act act) const {
    return error_in(space, [&] { act(*open_()); });
  }

 private:
  Open open_;
};

}  // namespace sidetrack::netns
