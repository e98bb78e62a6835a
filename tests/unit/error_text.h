// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "model/error.h"

namespace sidetrack::testing {

// What the error about a wrong value says, and its hint after a semicolon; "no error".
template <typename Act>
std::string error_text(Act act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what() + (error.hint().empty() ? "" : "; " + error.hint());
  }
  return "no error";
}

}  // namespace sidetrack::testing
