// SPDX-License-Identifier: GPL-2.0-or-later
#include "text/utf16.h"

#include <gtest/gtest.h>

namespace sidetrack {
namespace {

std::string of(std::string_view bytes) { return without_utf16(std::string(bytes)); }

TEST(Utf16, BecomesUtf8) {
  using namespace std::string_view_literals;
  EXPECT_EQ(of("\xff\xfe*\0n\0\n\0"sv), "*n\n");
  EXPECT_EQ(of("\xfe\xff\0*\0n\0\n"sv), "*n\n");
  EXPECT_EQ(of("\xff\xfe\xe4\0\x13\x20\x3d\xd8\x00\xde"sv), "\u00e4\u2013\U0001f600");
  EXPECT_EQ(of("\xff\xfe\x3d\xd8*\0"sv), "\ufffd*");
  EXPECT_EQ(of("\xff\xfe\x00\xde\x3d\xd8"sv), "\ufffd\ufffd");
  EXPECT_EQ(of("\xff\xfe*\0n"sv), "*") << "cut within a character";
  EXPECT_EQ(of("\xff\xfe"sv), "");
}

TEST(Utf16, LeavesOtherTextAlone) {
  EXPECT_EQ(of("*nat\n"), "*nat\n");
  EXPECT_EQ(of("\xff"), "\xff");
  EXPECT_EQ(of(""), "");
}

}  // namespace
}  // namespace sidetrack
