// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/printable.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "render/json_parts.h"

namespace sidetrack {
namespace {

struct Shown {
  std::string_view text;
  std::string_view printable;
};

TEST(Printable, WhatIsNotPlainlyVisibleIsAnEscape) {
  using namespace std::string_view_literals;
  static constexpr Shown cases[] = {
      {"ISTIO_OUTPUT", "ISTIO_OUTPUT"},
      {"Grüße, 世界 🚀 – „so“ …", "Grüße, 世界 🚀 – „so“ …"},
      {"a\\b", "a\\b"},
      {"\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"},
      {"a\0b\tc\nd\re\x7f"sv, "a\\x00b\\x09c\\x0ad\\x0de\\x7f"},
      {"\xc2\x9b[2J", "\\u009b[2J"},                         // CSI of C1
      {"\x9b[2J", "\\x9b[2J"},                               // the same as a byte
      {"a\xe2\x80\xaexe\xe2\x81\xa9", "a\\u202exe\\u2069"},  // right-to-left override, end of an isolate
      {"a\xe2\x80\xa8z", "a\\u2028z"},                       // line separator
      {"a\xef\xbb\xbfz", "a\\ufeffz"},                       // byte order mark
      {"\xf3\xa0\x81\x81", "\\U000e0041"},                   // a tag
      {"\xff\xfe", "\\xff\\xfe"},
      {"\xc3", "\\xc3"},                             // cut off
      {"\xc3(", "\\xc3("},                           // what follows is no continuation
      {"\xc0\xaf", "\\xc0\\xaf"},                    // '/', longer than needed
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},           // a surrogate
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // beyond U+10FFFF
  };
  for (const auto& [text, shown] : cases) {
    EXPECT_EQ(printable(text), shown);
    EXPECT_EQ(printable(shown), shown) << "not the same the second time";
  }
}

TEST(Printable, LinesAndPagesKeepTheirLayout) {
  EXPECT_EQ(printable_lines("a\n\tb\x1b[0m\r"), "a\n\tb\\x1b[0m\\x0d");
  EXPECT_EQ(printable_page("\033[1mbold\033[0m\n\033[32mgreen\033[0m"), "\033[1mbold\033[0m\n\033[32mgreen\033[0m");
  EXPECT_EQ(printable_page("\033[2J\033]0;title\a\033[;m\033[m\033["),
            "\\x1b[2J\\x1b]0;title\\x07\\x1b[;m\\x1b[m\\x1b[");
}

TEST(Printable, AValueInAMessageIsCut) {
  EXPECT_EQ(excerpt("10.0.0.0/8"), "10.0.0.0/8");
  EXPECT_EQ(excerpt(std::string(80, 'a')), std::string(80, 'a'));
  EXPECT_EQ(excerpt(std::string(2'000'000, 'a')), std::string(80, 'a') + "… (2000000 bytes)");
  EXPECT_EQ(excerpt("\x1b[2J"), "\\x1b[2J");
  std::string umlauts;
  for (int i = 0; i < 81; ++i) umlauts += "ü";
  EXPECT_EQ(excerpt(umlauts), umlauts.substr(0, 160) + "… (162 bytes)");  // no character is cut in two
}

TEST(Printable, JsonHasEscapesOfSixteenBits) {
  EXPECT_EQ(printable_json("{\"a\": \"\xc2\x9b\"}\n"), "{\"a\": \"\\u009b\"}\n");
  EXPECT_EQ(printable_json("\xf3\xa0\x81\x81 \xf0\x9f\x9a\x80"), "\\udb40\\udc41 \xf0\x9f\x9a\x80");
}

bool is_obeyed(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
}

// Random bytes, and bytes that make many sequences.
std::string random_text(std::mt19937& random) {
  static constexpr std::string_view likely = "a\"\\\x1b\n\x7f\xc2\x9b\xe2\x80\xae\xf0\x9f\x9a\x80\xff";
  std::string text;
  for (auto size = random() % 24; size > 0; --size)
    text += random() % 4 == 0 ? static_cast<char>(random() % 256) : likely[random() % likely.size()];
  return text;
}

TEST(Printable, IsValidUtf8AndNothingToObeyWhateverTheBytes) {
  std::mt19937 random(1337);
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = random_text(random);
    const std::string shown = printable(text);
    EXPECT_FALSE(is_obeyed(shown));
    EXPECT_EQ(valid_utf8(shown), shown);
    EXPECT_EQ(printable(shown), shown);
    if (::testing::Test::HasFailure()) FAIL() << ::testing::PrintToString(text);
  }
}

// JSON keeps valid text as it is, and has nothing in it that a terminal would obey.
TEST(Printable, JsonTakesAnyBytesAndLosesNoValidText) {
  std::mt19937 random(15001);
  for (int i = 0; i < 5'000; ++i) {
    const std::string text = random_text(random);
    std::string document;
    ASSERT_NO_THROW(document = dumped(Json{{"names", {text}}}, Lines::one)) << ::testing::PrintToString(text);
    EXPECT_FALSE(is_obeyed(document.substr(0, document.size() - 1)));
    EXPECT_EQ(printable_lines(document), document);
    EXPECT_EQ(nlohmann::json::parse(document)["names"][0].get<std::string>(), valid_utf8(text));
    if (::testing::Test::HasFailure()) FAIL() << ::testing::PrintToString(text);
  }
}

}  // namespace
}  // namespace sidetrack
