// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/error.h"

namespace sidetrack::cni {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string refusal_of_text(std::string_view text) {
  try {
    static_cast<void>(parse_object(text));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failed);
    return error.what();
  }
  return "";
}

std::string lists(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(JsonText, ErrorsNameLineAndColumn) {
  using namespace std::string_view_literals;
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {"", "invalid JSON in line 1, column 1"},
      {"x", "invalid JSON in line 1, column 1"},
      {"{\"a\": x}", "invalid JSON in line 1, column 7"},
      {"{\n\"a\": 1,\n  x}", "invalid JSON in line 3, column 3"},
      {"{\nx", "invalid JSON in line 2, column 1"},
      {"\0{}"sv, "invalid JSON in line 1, column 1"},
      {"{}\n\0"sv, "invalid JSON in line 2, column 1"},
      {"{\"a\":\n1}\0{}"sv, "invalid JSON in line 2, column 3"},
      {"[]", "expected a JSON object"},
      {"\xEF\xBB\xBF{}", "expected a JSON object"},
      {"{\"a\": 1e999}", "expected JSON with numbers that fit into 64 bits"},
      {"{}", ""},
      {" {\"a\": \"\\u0000\"} ", ""},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(refusal_of_text(text), expected) << text;
}

TEST(JsonText, NestsAThousandLevelsOutsideOfStrings) {
  EXPECT_EQ(refusal_of_text("{\"a\": " + lists(999) + "}"), "");
  const std::string too_deep = "lists and objects nested deeper than 1000 in line ";
  EXPECT_EQ(refusal_of_text("{\"a\":\n" + lists(1000) + "}"), too_deep + "2, column 1000");
  EXPECT_EQ(refusal_of_text(lists(1001)), too_deep + "1, column 1001");
  std::string objects;
  for (int i = 0; i < 1001; ++i) objects += "{\"a\":";
  EXPECT_EQ(refusal_of_text(objects), too_deep + "1, column 5001");
  // One beside the other; in a string, with a quote in it, and after one.
  EXPECT_EQ(refusal_of_text("{\"a\": " + lists(600) + ", \"b\": " + lists(600) + "}"), "");
  EXPECT_EQ(refusal_of_text("{\"a\": {\"b\": " + lists(600) + "}, \"c\": {\"d\": " + lists(600) + "}}"), "");
  EXPECT_EQ(refusal_of_text("{\"a\": \"" + std::string(2000, '[') + "\"}"), "");
  EXPECT_EQ(refusal_of_text("{\"a\": \"\\\"" + std::string(2000, '{') + "\"}"), "");
  EXPECT_EQ(refusal_of_text("{\"a\": \"\\\\\", \"b\": " + lists(1000) + "}"), too_deep + "1, column 1017");
  EXPECT_EQ(refusal_of_text("{\"a\": \"]]]]\", \"b\": " + lists(1000) + "}"), too_deep + "1, column 1019");
  // What closes more than is open is wrong before that.
  EXPECT_EQ(refusal_of_text("]]" + lists(1001)), "invalid JSON in line 1, column 1");
}

TEST(JsonText, ObjectsStandWhereTheyAreWritten) {
  const std::string_view text =
      R"( {"a": { "x":1e-400 ,"a": {"}": "\"}"}}, "b": {"a": {}}, "\u0061":3, "a":{}, "c": [{"a": {}}]} )";
  const auto a = objects_of(text, "a");
  EXPECT_THAT(a, ElementsAre(R"({ "x":1e-400 ,"a": {"}": "\"}"}})", "", "{}"));
  EXPECT_THAT(objects_of(text, "b"), ElementsAre(R"({"a": {}})"));
  EXPECT_THAT(objects_of(text, "c"), ElementsAre(""));
  EXPECT_THAT(objects_of(text, "x"), IsEmpty());
}

TEST(JsonText, AKeyIsRepeatedInItsOwnObjectAlone) {
  const std::vector<std::pair<std::string_view, std::optional<std::string>>> cases = {
      {R"({})", std::nullopt},
      {R"({"a": 1, "b": 2})", std::nullopt},
      {R"({"a": 1, "b": 2, "a": 3})", "a"},
      {R"({"a": 1, "\u0061": 3})", "a"},
      {R"({"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 2}]})", std::nullopt},
      {R"({"a": {"b": 1}, "c": {"b": 1}, "b": 1})", std::nullopt},
      {R"({"a": {"b": 1, "b": 2}})", "b"},
      {R"({"a": [[{"b": 1, "c": {}, "b": 2}]]})", "b"},
      {R"({"b": 1, "b": 2, "c": 1, "c": 2})", "b"},
      {R"({"but": {"a": 1, "a": 2}})", std::nullopt},
      {R"({"but": {"a": 1, "a": 2}, "c": 1, "c": 2})", "c"},
      {R"({"c": {"but": {"a": 1, "a": 2}}})", "a"},
      {R"({"c": "but", "d": {"a": 1, "a": 2}})", "a"},
  };
  for (const auto& [text, repeated] : cases) EXPECT_EQ(repeated_key(text, "but"), repeated) << text;
}

}  // namespace
}  // namespace sidetrack::cni
