// SPDX-License-Identifier: GPL-2.0-or-later
// Arguments and environment in, the sentence of the error out.
#include <gtest/gtest.h>

#include "options_text.h"

namespace sidetrack {
namespace {

using testing::parse_text;
using testing::Variables;

struct Case {
  std::string_view arguments;  // separated by blanks; '' is the empty one
  std::string_view message;
  std::string_view hint = "";
};

void expect(const std::vector<Case>& cases, const Variables& variables = {}) {
  for (const auto& [arguments, message, hint] : cases) {
    SCOPED_TRACE(arguments);
    try {
      parse_text(arguments, variables);
      ADD_FAILURE() << "was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), message);
      EXPECT_EQ(error.hint(), hint);
      EXPECT_EQ(error.code(), ExitCode::usage);
    }
  }
}

TEST(ParseError, Ports) {
  for (const char* port : {"0", "65536", "-1", "0x50", "80x", "80.0", "1e3", "99999999999999999999"}) {
    SCOPED_TRACE(port);
    expect({{"sidetrack --envoy-port=" + std::string(port),
             "-p, --envoy-port: '" + std::string(port) + "': expected a port from 1 to 65535"}});
  }
}

}  // namespace
}  // namespace sidetrack
