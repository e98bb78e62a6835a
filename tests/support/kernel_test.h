// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include "support/cannot_run.h"

namespace sidetrack::netns {

// A test that makes network namespaces: skipped without root, or failed if SIDETRACK_REQUIRE_KERNEL=1.
class KernelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) cannot_run("making network namespaces needs root");
  }
};

// To be called for every fault that the program meets with in a test: the report (--gtest_output) has how many.
inline void count_fault() {
  static const ::testing::TestInfo* test = nullptr;
  static int faults = 0;
  const ::testing::TestInfo* const running = ::testing::UnitTest::GetInstance()->current_test_info();
  if (running != test) faults = 0;
  test = running;
  ::testing::Test::RecordProperty("faults", ++faults);
}

}  // namespace sidetrack::netns
