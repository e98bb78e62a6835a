// SPDX-License-Identifier: GPL-2.0-or-later
// What is written reads back as it was, whatever the characters, types and places.
#include "inject/manifest/write.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sidetrack::manifest {
namespace {

Node mapping(std::vector<Entry> entries, bool flow = false) {
  Node node;
  node.type = Node::Type::mapping;
  node.flow = flow;
  node.entries = std::move(entries);
  return node;
}
Node list(std::vector<Node> items, bool flow = false) {
  Node node;
  node.type = Node::Type::list;
  node.flow = flow;
  node.items = std::move(items);
  return node;
}
Node scalar(Node::Type type, std::string_view text) {
  Node node;
  node.type = type;
  node.text = text;
  return node;
}

std::vector<std::string> texts() {
  std::vector<std::string> all{"",  " ",  "a b", "- a", "a: b", "#", "null",  "yes",
                               "1", "\n", "a\n", "\ta", "é",    "💡", "\u2028"};
  for (int c = 0; c < 0x80; ++c) {
    all.emplace_back(1, static_cast<char>(c));
    all.push_back("long" + std::string(1, static_cast<char>(c)) + "word");
  }
  return all;
}

TEST(Write, AnyTextIsTheSameInJson) {
  for (const std::string& text : texts()) {
    EXPECT_EQ(json_text(Node::string(text)), nlohmann::json(text).dump(-1, ' ', false)) << text;
    EXPECT_EQ(nlohmann::json::parse(json_text(mapping({{text, Node::Style::plain, Node::string("v")}}))).begin().key(),
              text);
  }
}

TEST(Write, AnyTextReadsBackFromYaml) {
  for (const std::string& text : texts()) {
    for (const auto style : {Node::Style::plain, Node::Style::single_quoted, Node::Style::double_quoted,
                             Node::Style::literal, Node::Style::folded}) {
      Node value = Node::string(text);
      value.style = style;
      const Node root = mapping({{"k", Node::Style::plain, value}, {"l", Node::Style::plain, list({value, value})}});
      const auto read = parse_yaml(yaml_text(root), "test");
      ASSERT_EQ(read.size(), 1U);
      EXPECT_TRUE(read[0].root == root) << text;
    }
  }
}

TEST(Write, TypesAndLayout) {
  using Type = Node::Type;
  const Node root = mapping({{"nothing", {}, scalar(Type::null, "")},
                             {"tilde", {}, scalar(Type::null, "~")},
                             {"yes", {}, scalar(Type::boolean, "yes")},
                             {"no", {}, scalar(Type::boolean, "off")},
                             {"number", {}, scalar(Type::number, "0x1F")},
                             {"float", {}, scalar(Type::number, "+01.50e3")},
                             {"empty", {}, list({})},
                             {"none", {}, mapping({})},
                             {"list", {}, list({scalar(Type::number, "1"), mapping({{"a", {}, list({})}})})},
                             {"flow", {}, list({scalar(Type::number, "1"), Node::string("b")}, true)},
                             {"map", {}, mapping({{"a", {}, Node::string("b")}}, true)}});
  EXPECT_EQ(json_text(root),
            R"({"nothing":null,"tilde":null,"yes":true,"no":false,"number":31,"float":1.50e3,"empty":[],"none":{},)"
            R"("list":[1,{"a":[]}],"flow":[1,"b"],"map":{"a":"b"}})");
  EXPECT_EQ(json_text(mapping({{"a", {}, list({scalar(Type::number, "1"), mapping({})})}, {"b", {}, list({})}}),
                      Layout::indented),
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
  EXPECT_TRUE(parse_yaml(yaml_text(root), "test").at(0).root == root);
  EXPECT_TRUE(parse_json(json_text(root), "test").at(0).root == parse_yaml(json_text(root), "test").at(0).root);
}

}  // namespace
}  // namespace sidetrack::manifest
