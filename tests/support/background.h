// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "support/file_descriptor.h"
#include "support/namespace.h"
#include "support/words.h"

namespace sidetrack::netns {

// A program that runs in a namespace while the test goes on. It is killed with the object, if it has not ended.
class Background {
 public:
  // With `terminal`, its streams are a terminal of its own, in a session of its own; else pipes.
  Background(const Namespace& where, const Words& words, const Words& environment = {}, bool terminal = false);
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Until it has said that, on standard error or its terminal, so many times. Throws if it ends first, or for too long.
  void wait_for(std::string_view text, int times = 1);
  void type(std::string_view text) const;  // into its standard input
  void close_input() { in_ = {}; }
  void hang_up();  // its terminal is gone
  void signal(int number) const;
  [[nodiscard]] Output end();  // waits for it
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  [[nodiscard]] bool read_more();  // false: it has closed its streams
  pid_t pid_ = 0;
  FileDescriptor in_;
  FileDescriptor err_;  // of a terminal: all
  std::string said_;
};

}  // namespace sidetrack::netns
