// SPDX-License-Identifier: GPL-2.0-or-later
// What is read of YAML and JSON, node by node: types, styles, lines, and how much of it at most.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "inject/manifest/patch.h"
#include "inject/manifest/read.h"
#include "inject/manifest/write.h"
#include "model/error.h"
#include "unit/standard_input.h"
#include "unit/temporary_file.h"

namespace sidetrack::manifest {
namespace {

using ::testing::HasSubstr;

std::string said_of(const Node& node, const std::string& indent = "") {
  constexpr std::string_view styles[] = {"plain", "single", "double", "literal", "folded"};
  const auto style = [&](Node::Style of) { return styles[static_cast<std::size_t>(of)]; };
  std::string said = fmt::format("{} {}", node.line, name(node.type));
  if (node.is_scalar()) return said + fmt::format(" {} '{}'\n", style(node.style), node.text);
  said += node.flow ? " flow\n" : "\n";
  for (const Node& item : node.items) said += indent + "- " + said_of(item, indent + "  ");
  for (const Entry& entry : node.entries)
    said += fmt::format("{}{} {}: {}", indent, style(entry.style), entry.key, said_of(entry.value, indent + "  "));
  return said;
}

std::string error_beyond(const std::string& text, std::size_t most = Limits{}.nodes) {
  try {
    static_cast<void>(parse_documents(text, "a.yaml", {.nodes = most}));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what() + (error.hint().empty() ? "" : "; " + error.hint());
  }
  return "no error";
}

TEST(Nodes, OfYamlHaveTypesStylesAndLines) {
  const std::string text = R"(plain: word
'single': 'a'
"double": "b"
literal: |
  c
folded: >
  d
8080: 0x10
on: off
nothing:
list:
- e
- [f, {g: h}]
mapping: {i: j}
tagged: !!str 5
number: !!int '7'
quoted: ! yes
binary: !!float 1.5
boolean: !!bool no
)";
  Documents documents = parse_documents("a: b", "a.yaml");
  EXPECT_EQ(said_of(documents.list[0].root), "1 a mapping\nplain a: 1 a string plain 'b'\n");
  documents = parse_documents(text, "a.yaml");
  EXPECT_EQ(said_of(documents.list[0].root), R"(1 a mapping
plain plain: 1 a string plain 'word'
single single: 2 a string single 'a'
double double: 3 a string double 'b'
plain literal: 4 a string literal 'c
'
plain folded: 6 a string folded 'd
'
plain 8080: 8 a number plain '0x10'
double true: 9 a boolean plain 'off'
plain nothing: 10 null plain ''
plain list: 12 a list
  - 12 a string plain 'e'
  - 13 a list flow
    - 13 a string plain 'f'
    - 13 a mapping flow
      plain g: 13 a string plain 'h'
plain mapping: 14 a mapping flow
  plain i: 14 a string plain 'j'
plain tagged: 15 a string double '5'
plain number: 16 a number plain '7'
plain quoted: 17 a string double 'yes'
plain binary: 18 a number plain '1.5'
plain boolean: 19 a boolean plain 'no'
)");
}

TEST(Nodes, OfJsonAreQuotedAndHaveNoLines) {
  const Documents documents = parse_documents(R"({"a": [1, -2, 1.50, true, false, null, "b"], "c": {}})", "a.json");
  EXPECT_EQ(said_of(documents.list[0].root), R"(0 a mapping flow
double a: 0 a list flow
  - 0 a number plain '1'
  - 0 a number plain '-2'
  - 0 a number plain '1.50'
  - 0 a boolean plain 'true'
  - 0 a boolean plain 'false'
  - 0 null plain 'null'
  - 0 a string double 'b'
double c: 0 a mapping flow
)");
}

// Texts of JSON one after the other, and what stands between them.
TEST(Nodes, OfStreamsOfJson) {
  const auto count = [](const std::string& text) { return parse_json(text, "a.json").size(); };
  EXPECT_EQ(count("{}"), 1U);
  EXPECT_EQ(count("{}{}"), 2U);
  EXPECT_EQ(count(" {} \t\r\n {}\n"), 2U);
  EXPECT_EQ(count("{}\n---\n{}\n"), 2U);
  EXPECT_EQ(count("{}\n---\n---\n{}"), 2U);
  EXPECT_EQ(count(R"({"a": "}{"} {"b": "\"}"} ["\\"])"), 3U);
  EXPECT_EQ(count(R"([{"a": [1, 2]}, {}] {})"), 2U);
  EXPECT_EQ(count("5"), 1U);
  for (const char* wrong :
       {"", " ", "{} x", "{} ---", "---\n{}", "{}--- {}", "{", "]", "{} }", "{\"a\": \"", "{\"a\": \"\\"})
    EXPECT_THROW(static_cast<void>(count(wrong)), Error) << wrong;
}

// At the limits, and one beyond.
TEST(Nodes, AreNoMoreThanAllowed) {
  EXPECT_EQ(error_beyond("[a, b, c]", 4), "no error");
  EXPECT_EQ(error_beyond("\n[a, b, c]", 3), "a.yaml, line 2: more than 3 values, with those that aliases stand for");
  EXPECT_EQ(error_beyond("a: b", 3), "no error");
  EXPECT_EQ(error_beyond("a: b", 2), "a.yaml, line 1: more than 2 values, with those that aliases stand for");
  EXPECT_EQ(error_beyond("[&a [b, c], *a]", 7), "no error");
  EXPECT_EQ(error_beyond("[&a [b, c], *a]", 6),
            "a.yaml, line 1: more than 6 values, with those that aliases stand for");
  EXPECT_EQ(error_beyond("[&a b, &c [*a, *a], *c]", 8), "no error");
  EXPECT_EQ(error_beyond("[&a b, &c [*a, *a], *c]", 7),
            "a.yaml, line 1: more than 7 values, with those that aliases stand for");
  const auto json_error = [](const std::string& text, std::size_t most) -> std::string {
    try {
      static_cast<void>(parse_json(text, "a.json", {.nodes = most}));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(json_error("[0." + std::string(998, '1') + "]", 4), "no error");
  EXPECT_EQ(json_error("[0." + std::string(999, '1') + "]", 4), "a.json: a number of more than 1000 characters");
  EXPECT_EQ(json_error("[1, 2, {}]", 4), "no error");
  EXPECT_EQ(json_error("[1, 2, {}]", 3), "a.json: more than 3 values");
  EXPECT_EQ(json_error("[1, 2, 3]", 3), "a.json: more than 3 values");
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(json_error(nested(100), 1000), "no error");
  EXPECT_EQ(json_error(nested(101), 1000), "a.json: lists and mappings nested deeper than 100");
  const auto around = [](std::size_t depth, const char* what) {
    return std::string(depth, '[') + what + std::string(depth, ']');
  };
  EXPECT_EQ(error_beyond(around(100, "x")), "no error");
  EXPECT_EQ(error_beyond(around(101, "x")), "a.yaml, line 1: lists and mappings nested deeper than 100");
  EXPECT_EQ(error_beyond(around(99, "{a: x}")), "no error");
  EXPECT_EQ(error_beyond(around(100, "{a: x}")), "a.yaml, line 1: lists and mappings nested deeper than 100");
  // What an alias stands for is as deep as it was.
  const auto aliased = [&](std::size_t depth) {
    return "- &a " + around(60, "x") + "\n- " + around(depth, "*a") + "\n";
  };
  EXPECT_EQ(error_beyond(aliased(39)), "no error");
  EXPECT_EQ(error_beyond(aliased(40)), "a.yaml, line 2: lists and mappings nested deeper than 100");
  EXPECT_EQ(json_error("{\"a\": 1, \"a\": 2}", 10), "a.json: 'a': duplicate key");
  std::string large = "{";
  for (int i = 0; i < 20; ++i) large += fmt::format("\"k{}\": {}, ", i, i);
  EXPECT_EQ(json_error(large + "\"k20\": 1}", 100), "no error");
  for (const char* again : {"k0", "k14", "k15", "k16", "k19"})
    EXPECT_EQ(json_error(large + "\"" + again + "\": 1}", 100), fmt::format("a.json: '{}': duplicate key", again));
  EXPECT_EQ(json_error(std::string("{}\0", 3), 10), "a.json: not JSON: it has a zero byte");
}

TEST(Nodes, SayWhereAndWhatIsWrong) {
  const std::pair<std::string, std::string> all[] = {
      {"a:\n\tb",
       "a.yaml, line 2, column 1: not YAML: found character that cannot start any token; indent with spaces, not tabs"},
      {"a: *",
       "a.yaml, line 1, column 5: not YAML: did not find expected alphabetic or numeric character; a value that begins "
       "with * is written in quotes: '*'"},
      {"a: @b",
       "a.yaml, line 1, column 4: not YAML: found character that cannot start any token; a value that begins with @ is "
       "written in quotes"},
      {"é: %b",
       "a.yaml, line 1, column 4: not YAML: found character that cannot start any token; a value that begins with % is "
       "written in quotes"},
      {"a: `b",
       "a.yaml, line 1, column 4: not YAML: found character that cannot start any token; a value that begins with ` is "
       "written in quotes"},
      {"\na: b: c", "a.yaml, line 2, column 5: not YAML: mapping values are not allowed in this context"},
      {"a: 1\n\n[b]: 2", "a.yaml, line 3: a list as a key: expected a string"},
      {"\n{a: b}: 2", "a.yaml, line 2: a mapping as a key: expected a string"},
      {"\n~: 2", "a.yaml, line 2: null as a key: expected a string"},
      {"\na: *b", "a.yaml, line 2: '*b': there is no such anchor before it"},
      {"\n<<: 5", "a.yaml, line 2: '<<': a number: expected a mapping, or a list of mappings"},
      {"\n<<: [{}, 5]", "a.yaml, line 2: '<<': a list: expected a mapping, or a list of mappings"},
      {"\na: !!int x",
       "a.yaml, line 2: the tag 'tag:yaml.org,2002:int': not what the value is, a string; leave it out"},
      {"a: !!bool 5",
       "a.yaml, line 1: the tag 'tag:yaml.org,2002:bool': not what the value is, a number; leave it out"},
      {"a: !!str null", "no error"},
      {"a: !!null ''", "no error"},
  };
  for (const auto& [text, expected] : all) EXPECT_EQ(error_beyond(text), expected) << text;
}

// The mapping's own keys count before merged ones, earlier merged ones before later ones, in their order.
TEST(Nodes, MergeKeysInTheirOrder) {
  const auto merged = [](const char* text) { return json_text(parse_yaml(text, "a")[0].root.entries.back().value); };
  EXPECT_EQ(merged("a: &a {k: 1, l: 2}\nb: &b {l: 3, m: 4}\nc: {<<: *a, x: 5, <<: *b}"),
            R"({"k":1,"l":3,"x":5,"m":4})");
  EXPECT_EQ(merged("a: &a {k: 1, l: 2}\nb: &b {l: 3, m: 4}\nc: {<<: [*b, *a], k: 5}"), R"({"k":5,"l":3,"m":4})");
  EXPECT_EQ(merged("c: {<<: {a: 1}}"), R"({"a":1})");
}

TEST(Nodes, AreEqualIfTheyMeanTheSame) {
  const auto same = [](const char* a, const char* b) {
    return parse_yaml(a, "a")[0].root == parse_yaml(b, "b")[0].root;
  };
  EXPECT_TRUE(same("yes", "true"));
  EXPECT_FALSE(same("yes", "no"));
  EXPECT_TRUE(same("~", "null"));
  EXPECT_TRUE(same("0x10", "16"));
  EXPECT_FALSE(same("16", "'16'"));
  EXPECT_FALSE(same("16", "17"));
  EXPECT_FALSE(same("a", "b"));
  EXPECT_TRUE(same("[a, 1]", "- a\n- 0x1"));
  EXPECT_FALSE(same("[a, 1]", "[a]"));
  EXPECT_FALSE(same("{a: b}", "{a: c}"));
  EXPECT_FALSE(same("{a: b}", "{c: b}"));
  EXPECT_FALSE(same("{a: b, c: d}", "{c: d, a: b}"));
}

// Step by step: what stays is not spoken of.
TEST(Patch, IsWrittenSo) {
  const auto steps = [](const char* before, const char* after) {
    return patch(parse_yaml(before, "a")[0].root, parse_yaml(after, "b")[0].root);
  };
  EXPECT_EQ(
      steps("{a: 1, b: 2}", "{b: 3, c: 4}"),
      R"([{"op":"remove","path":"/a"},{"op":"replace","path":"/b","value":3},{"op":"add","path":"/c","value":4}])");
  EXPECT_EQ(steps("{a/b~c: 1}", "{}"), R"([{"op":"remove","path":"/a~1b~0c"}])");
  EXPECT_EQ(steps("[1, 2, 3, 4, 5]", "[1, 5]"),
            R"([{"op":"remove","path":"/3"},{"op":"remove","path":"/2"},{"op":"remove","path":"/1"}])");
  EXPECT_EQ(steps("[1, 5]", "[1, 2, 3, 5]"),
            R"([{"op":"add","path":"/1","value":2},{"op":"add","path":"/2","value":3}])");
  EXPECT_EQ(steps("[1, {a: 1}, 5]", "[1, {a: 2}, 6, 5]"),
            R"([{"op":"replace","path":"/1/a","value":2},{"op":"add","path":"/2","value":6}])");
  EXPECT_EQ(steps("[1, 1]", "[1, 1, 1]"), R"([{"op":"add","path":"/2","value":1}])");
  EXPECT_EQ(steps("[1, 1, 1]", "[1]"), R"([{"op":"remove","path":"/2"},{"op":"remove","path":"/1"}])");
  EXPECT_EQ(steps("5", "[5]"), R"([{"op":"replace","path":"","value":[5]}])");
  EXPECT_EQ(steps("[]", "[]"), "[]");
}

TEST(Written, KeepsWhatIsNotChanged) {
  const auto write = [](const std::string& text, std::vector<std::size_t> changed) {
    Documents documents = parse_documents(text, "a.yaml");
    for (Document& document : documents.list) {
      for (Entry& entry : document.root.entries.own()) entry.value.text += "!";
    }
    std::string made = written(documents, [&](const Document& document) {
      return std::ranges::find(changed, document.number) != changed.end();
    });
    for (const Document& document : documents.list) EXPECT_TRUE(document.root.is_null());
    return made;
  };
  const std::string text = "# first\na: b   # b\n---\n# second\nc:   d\n--- # third\ne: f";
  EXPECT_EQ(write(text, {}), text);
  EXPECT_EQ(write(text, {1}), "a: b!\n---\n# second\nc:   d\n--- # third\ne: f");
  EXPECT_EQ(write(text, {2}), "# first\na: b   # b\n---\nc: d!\n--- # third\ne: f");
  EXPECT_EQ(write(text, {1, 3}), "a: b!\n---\n# second\nc:   d\n---\ne: f!\n");
  EXPECT_EQ(write(R"({"a": "b"} {"c": "d"})", {2}), "{\n  \"a\": \"b!\"\n}\n{\n  \"c\": \"d!\"\n}\n");
  EXPECT_EQ(write(R"({"a": "b"} {"c": "d"})", {}), R"({"a": "b"} {"c": "d"})");
}

TEST(ReadText, SaysWhatCannotBeRead) {
  const auto said = [](const std::string& file) -> std::string {
    try {
      static_cast<void>(read_text(file));
    } catch (const Error& error) {
      return error.what() + (error.hint().empty() ? "" : "; " + error.hint());
    }
    return "no error";
  };
  EXPECT_EQ(said("/no/such/file"), "/no/such/file: cannot be read: No such file or directory (ENOENT)");
  EXPECT_EQ(said("/"), "/: cannot be read: Is a directory (EISDIR)");
  EXPECT_THAT(said("/dev/zero"), HasSubstr("/dev/zero: cannot be read: File too large (EFBIG); at most "));
  const sidetrack::testing::TemporaryFile file("a");
  EXPECT_EQ(read_text(file.path()).text, "a");
  EXPECT_EQ(read_text(file.path()).name, file.path());
}

// It can be read once, and is asked for more often.
TEST(ReadText, KnowsStandardInputAfterItsEnd) {
  const sidetrack::testing::StandardInput input("a: b");
  const Text once = read_text("-");
  EXPECT_EQ(once.name, "standard input");
  EXPECT_THAT(once.text, ::testing::EndsWith("a: b"));
  EXPECT_EQ(read_text("-").text, once.text);
}

}  // namespace
}  // namespace sidetrack::manifest
