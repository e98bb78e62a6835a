// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string_view>

#include "unit/temporary_file.h"

namespace sidetrack::testing {

// What this program reads from its standard input, for as long as it lives.
class StandardInput {
 public:
  explicit StandardInput(std::string_view content) : file_(content) {
    const int opened = open(file_.path().c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(dup2(opened, STDIN_FILENO), STDIN_FILENO);
    close(opened);
  }
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;
  ~StandardInput() {
    dup2(before_, STDIN_FILENO);
    close(before_);
  }

 private:
  int before_ = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  TemporaryFile file_;
};

}  // namespace sidetrack::testing
