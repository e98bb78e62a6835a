// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace sidetrack::netns {

// A test that makes network namespaces: skipped without root, or failed if SIDETRACK_REQUIRE_KERNEL=1.
class KernelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() == 0) return;
    const char* required = std::getenv("SIDETRACK_REQUIRE_KERNEL");
    constexpr auto reason = "making network namespaces needs root";
    if (required != nullptr && std::string_view(required) == "1") FAIL() << reason;
    GTEST_SKIP() << reason;
  }
};

}  // namespace sidetrack::netns
