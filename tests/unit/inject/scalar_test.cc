// SPDX-License-Identifier: GPL-2.0-or-later
#include "inject/manifest/scalar.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>

namespace sidetrack::manifest {
namespace {

using Type = Node::Type;

void expect(Type type, const std::vector<std::string_view>& texts) {
  for (const std::string_view text : texts) EXPECT_EQ(type_of_plain(text), type) << text;
}

// As sigs.k8s.io/yaml reads them.
TEST(Scalar, HasTheTypeThatItHasForKubernetes) {
  expect(Type::null, {"", "~", "null", "Null", "NULL"});
  expect(Type::boolean, {"true", "False", "YES", "no", "on", "Off", "y", "N"});
  expect(Type::number, {"0",   "80",  "-1", "+1", "1_000", "0644",    "0o644", "0x1F",  "0b101", "-0b1",
                        "089", "1.5", ".5", "5.", "1e3",   "-1.5E-3", ".inf",  "-.Inf", ".NaN",  "18446744073709551615",
                        "1e0"});
  expect(Type::string, {"nULL",
                        "tRUE",
                        "yeS",
                        "a",
                        "-",
                        ".",
                        "..",
                        "+",
                        "1e",
                        "0x",
                        "0o",
                        "0o8",
                        "0b2",
                        "1.2.3",
                        "10.0.0.0/8",
                        "80,443",
                        "2001-01-01",
                        "2001-12-14t21:59:43.10-05:00",
                        "1e505",
                        "01E505",
                        "-1e309",
                        "190:20:30",
                        "1 2",
                        "*",
                        "0x1234567890ABCDEF0",
                        "0o17777777777777777777777",
                        "-0b1111111111111111111111111111111111111111111111111111111111111111111",
                        "--1",
                        "e5",
                        "=",
                        "<<"});
}

TEST(Scalar, IsTrueOrFalse) {
  for (const std::string_view text : {"y", "Yes", "ON", "true"}) EXPECT_TRUE(is_true(text)) << text;
  for (const std::string_view text : {"n", "No", "OFF", "false"}) EXPECT_FALSE(is_true(text)) << text;
}

TEST(Scalar, IsAJsonNumber) {
  const std::pair<std::string_view, std::string_view> all[] = {{"80", "80"},
                                                               {"-0", "0"},
                                                               {"+80", "80"},
                                                               {"0644", "420"},
                                                               {"0o644", "420"},
                                                               {"0x1F", "31"},
                                                               {"-0b101", "-5"},
                                                               {"1_000", "1000"},
                                                               {"089", "89"},
                                                               {".5", "0.5"},
                                                               {"5.", "5"},
                                                               {"+1.50", "1.50"},
                                                               {"-00.5", "-0.5"},
                                                               {"1e3", "1e3"},
                                                               {"1.5E-3", "1.5E-3"},
                                                               {"18446744073709551615", "18446744073709551615"},
                                                               {"-99999999999999999999", "-99999999999999999999"},
                                                               {"055555555555555555555555", "55555555555555555555555"},
                                                               {"-02000000000000000000000", "-2000000000000000000000"},
                                                               {"-01000000000000000000001", "-1000000000000000000001"},
                                                               {"-01000000000000000000000", "-9223372036854775808"}};
  for (const auto& [text, number] : all) EXPECT_EQ(json_number(text), number) << text;
}

// Every character after, between and before digits.
TEST(Scalar, EveryCharacterOfANumber) {
  const auto is_number = [](const std::string& text) { return type_of_plain(text) == Type::number; };
  for (int c = '!'; c <= '~'; ++c) {
    const std::string one(1, static_cast<char>(c));
    const bool digit = c >= '0' && c <= '9';
    const bool hexadecimal = digit || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    EXPECT_EQ(is_number("1" + one), digit || c == '_' || c == '.') << one;
    EXPECT_EQ(is_number("1" + one + "1"), digit || c == '_' || c == '.' || c == 'e' || c == 'E') << one;
    EXPECT_EQ(is_number("1.1" + one + "1"), digit || c == '_' || c == 'e' || c == 'E') << one;
    EXPECT_EQ(is_number("1e" + one + "1"), digit || c == '_' || c == '+' || c == '-') << one;
    EXPECT_EQ(is_number(one + "1"), digit || c == '+' || c == '-' || c == '.') << one;
    EXPECT_EQ(is_number("0x1" + one), hexadecimal || c == '_') << one;
    EXPECT_EQ(is_number("0b1" + one), c == '0' || c == '1' || c == '_') << one;
    EXPECT_EQ(is_number("0o1" + one), (c >= '0' && c <= '7') || c == '_') << one;
    if (hexadecimal) {
      EXPECT_EQ(json_number("0x1" + one), std::to_string(std::stoi("1" + one, nullptr, 16))) << one;
    }
  }
  for (const char* text : {"1e308", "-1e308", "0e999", "0.0"}) EXPECT_TRUE(is_number(text)) << text;
  for (const char* text : {"1e309", "-1e309", "1e", "1e+", ".", "-.", "+", "0x", "0b", "0o", ".e1"})
    EXPECT_FALSE(is_number(text)) << text;
}

TEST(Scalar, AFloatIsWrittenAsJsonHasIt) {
  for (const auto& [text, expected] :
       std::initializer_list<std::pair<std::string_view, std::string_view>>{{"-.5", "-0.5"},
                                                                            {"+.5e+3", "0.5e+3"},
                                                                            {"1.e3", "1e3"},
                                                                            {"00.50", "0.50"},
                                                                            {"0.0", "0.0"},
                                                                            {"1_0.0_1", "10.01"},
                                                                            {"-1E-3", "-1E-3"},
                                                                            {"007.5", "7.5"},
                                                                            {"08", "8"},
                                                                            {"-08", "-8"},
                                                                            {"0", "0"},
                                                                            {"00", "0"},
                                                                            {"-0x10", "-16"},
                                                                            {"+0b11", "3"},
                                                                            {".inf", ".inf"}})
    EXPECT_EQ(json_number(text), expected) << text;
}

TEST(Scalar, AsAKeyIsAString) {
  EXPECT_EQ(key_of_plain("on"), "true");
  EXPECT_EQ(key_of_plain("NO"), "false");
  EXPECT_EQ(key_of_plain("0x10"), "16");
  EXPECT_EQ(key_of_plain("8080"), "8080");
  EXPECT_EQ(key_of_plain("name"), "name");
}

}  // namespace
}  // namespace sidetrack::manifest
