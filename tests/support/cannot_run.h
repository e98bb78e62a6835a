// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace sidetrack {

// Of a test that cannot run here, with what it would take: it is skipped, or failed if SIDETRACK_REQUIRE_KERNEL=1. The
// caller returns.
inline void cannot_run(const std::string& reason) {
  const char* required = std::getenv("SIDETRACK_REQUIRE_KERNEL");
  if (required != nullptr && std::string_view(required) == "1") FAIL() << reason;
  GTEST_SKIP() << reason;
}

}  // namespace sidetrack
