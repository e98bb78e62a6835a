// SPDX-License-Identifier: GPL-2.0-or-later
// A network namespace of its own for a test, and ways to act inside it.
//
// Everything is done in threads of the test process: a thread enters the namespace, takes on the credentials, acts
// and ends. A socket belongs to the namespace of the thread that makes it, and `-m owner` looks at the credentials of
// that thread at that moment, so no process has to be forked and results need no way back.
#pragma once

#include <sys/types.h>

#include <future>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/file_descriptor.h"

namespace sidetrack::netns {

struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
  bool keep_capabilities = false;  // as a container with `capabilities: add` has them; IP_TRANSPARENT needs NET_ADMIN
};

// What a program left behind.
struct Output {
  int exit_code = 0;  // 128 + the signal's number if one ended it, as a shell counts
  std::string out;
  std::string err;
};

class Namespace {
 public:
  // A fresh one, nameless: it is gone when this object and all sockets in it are.
  Namespace();
  // One that is made elsewhere.
  explicit Namespace(FileDescriptor fd) : fd_(std::move(fd)) {}

  // Calls `act` inside, in a thread of its own, and returns what it returns or throws what it throws.
  template <typename Act>
  std::invoke_result_t<Act> run(Act act, Identity identity = {}) const {
    std::packaged_task<std::invoke_result_t<Act>()> task([&] {
      enter(identity);
      return act();
    });
    auto result = task.get_future();
    std::thread(std::move(task)).join();
    return result.get();
  }

  // Runs a program inside, found by PATH, and waits for its end; `input` is its standard input.
  // `environment` ("NAME=value") is added to this process's own.
  [[nodiscard]] Output program(const std::vector<std::string>& words, const std::string& input = {},
                               const std::vector<std::string>& environment = {}, Identity identity = {}) const;

  // The same, for programs that must succeed: throws with their messages if they do not. Returns standard output.
  std::string must(const std::vector<std::string>& words, const std::string& input = {}) const;

  // Moves the calling thread inside, for good.
  void enter(Identity identity = {}) const;

  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  FileDescriptor fd_;
};

}  // namespace sidetrack::netns
