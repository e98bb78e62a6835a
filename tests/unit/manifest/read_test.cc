// SPDX-License-Identifier: GPL-2.0-or-later
#include "manifest/read.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "model/error.h"
#include "unit/error_text.h"
#include "unit/temporary_file.h"

namespace sidetrack::manifest {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Type = Node::Type;

Node one(std::string_view text) {
  Documents documents = parse_documents(std::string(text), "a.yaml");
  EXPECT_EQ(documents.list.size(), 1U) << text;
  return documents.list.empty() ? Node{} : std::move(documents.list[0].root);
}

std::string error_of(std::string_view text) {
  return sidetrack::testing::error_text([&] { (void)parse_documents(std::string(text), "a.yaml"); });
}

TEST(Read, KeepsOrderTypesAndQuotes) {
  const Node root = one("b: 1\na: 'yes'\nc: yes\nd: [x, \"80\", null]\ne: |\n  two\n  lines\n");
  ASSERT_EQ(root.type, Type::mapping);
  ASSERT_EQ(root.entries.size(), 5U);
  EXPECT_EQ(root.entries[0].key, "b");
  EXPECT_EQ(root.entries[0].value.type, Type::number);
  EXPECT_EQ(root.entries[1].value.type, Type::string);
  EXPECT_EQ(root.entries[1].value.style, Node::Style::single_quoted);
  EXPECT_TRUE(root.entries[2].value.is_true());
  const Node& list = root.entries[3].value;
  EXPECT_TRUE(list.flow);
  EXPECT_EQ(list.items[1].type, Type::string);
  EXPECT_TRUE(list.items[2].is_null());
  EXPECT_EQ(root.entries[4].value.text, "two\nlines\n");
  EXPECT_EQ(root.entries[4].value.style, Node::Style::literal);
  EXPECT_EQ(root.entries[4].value.line, 5U);
}

TEST(Read, FindsNoNull) {
  const Node root = one("a: null\nb: {}\n");
  EXPECT_EQ(root.find("a"), nullptr);
  EXPECT_NE(root.find("b"), nullptr);
  EXPECT_EQ(root.find("c"), nullptr);
}

TEST(Read, DocumentsAreNumberedAndEmptyOnesAreNull) {
  const Documents documents = parse_documents("a: 1\n---\n# nothing\n---\nb: 2\n...\n---\nc: 3\n", "a.yaml");
  ASSERT_EQ(documents.list.size(), 4U);
  EXPECT_TRUE(documents.list[1].root.is_null());
  EXPECT_EQ(documents.list[3].number, 4U);
  EXPECT_FALSE(documents.list[0].marked);
  EXPECT_TRUE(documents.list[3].marked);
  EXPECT_EQ(documents.list[3].begin, documents.text.rfind("---"));
  for (const std::string_view text : {"", "\n", "# a comment\n", "---\n", "null\n"})
    EXPECT_TRUE(parse_documents(std::string(text), "a.yaml").empty()) << text;
}

TEST(Read, JsonAndYamlAreOne) {
  const std::string_view text = R"({"a": [1, -2, 1.50, true, null, "x\ud83d\ude00\/"], "b": {"c": ""}})";
  Documents json = parse_documents(std::string(text), "a.json");
  EXPECT_EQ(json.form, Form::json);
  EXPECT_EQ(json.list[0].root, one("a: [1, -2, 1.50, true, null, \"x\xF0\x9F\x98\x80/\"]\nb: {c: ''}\n"));
  // kubectl reads it as YAML, too.
  EXPECT_EQ(parse_documents("{a: 1}\n", "a.yaml").form, Form::yaml);
  EXPECT_EQ(one("{a: 1}"), one("a: 1"));
}

TEST(Read, DocumentsOfJsonAreNumberedAndKnowWhatWasQuoted) {
  const std::vector<Document> documents = parse_json(R"({"a": "1", "b": 1} {} [])", "a.json");
  ASSERT_EQ(documents.size(), 3U);
  for (std::size_t i = 0; i < documents.size(); ++i) EXPECT_EQ(documents[i].number, i + 1);
  EXPECT_EQ(documents[0].root.find("a")->style, Node::Style::double_quoted);
  EXPECT_EQ(documents[0].root.find("b")->style, Node::Style::plain);
}

TEST(Read, AZeroByteIsNotTheEndOfJson) {
  for (const std::string& text : {std::string("{\"a\": 1}\0garbage", 16), std::string("{\"a\": 1\0}", 10)})
    EXPECT_THROW(static_cast<void>(parse_json(text, "a.json")), Error) << text;
}

TEST(Read, AliasesAndMergeKeysAreResolved) {
  EXPECT_EQ(one("a: &x {k: 1}\nb: *x\nc: [*x, *x]\n"), one("a: {k: 1}\nb: {k: 1}\nc: [{k: 1}, {k: 1}]\n"));
  EXPECT_EQ(one("a: &x {k: 1, l: 2}\nb: {<<: *x, k: 3}\n"), one("a: {k: 1, l: 2}\nb: {k: 3, l: 2}\n"));
  EXPECT_EQ(one("a: &x {k: 1}\nb: &y {k: 2, l: 2}\nc: {<<: [*x, *y]}\n"),
            one("a: {k: 1}\nb: {k: 2, l: 2}\nc: {k: 1, l: 2}\n"));
  EXPECT_EQ(one("{'<<': 1}").entries[0].key, "<<");
  // An anchor may be used again.
  EXPECT_EQ(one("[&a 1, *a, &a 2, *a]"), one("[1, 1, 2, 2]"));
}

TEST(Read, TagsOfJsonTypesAreTaken) {
  EXPECT_EQ(one("a: !!str 80"), one("a: '80'"));
  EXPECT_EQ(one("a: ! 80"), one("a: '80'"));
  EXPECT_EQ(one("a: !!int '80'"), one("a: 80"));
  EXPECT_EQ(one("a: !!map {b: !!seq [1]}"), one("a: {b: [1]}"));
}

// As kubectl's reader: of a scalar that it does not know the text counts, of a list or mapping the parts.
TEST(Read, OtherTagsAreTakenForNone) {
  EXPECT_EQ(one("a: !Ref 80"), one("a: '80'"));
  EXPECT_EQ(one("a: !Sub \"${b}\""), one("a: '${b}'"));
  EXPECT_EQ(one("a: !Join [!GetAtt b, c]"), one("a: [b, c]"));
  EXPECT_EQ(one("a: !!timestamp 2001-01-01\nb: !<mine> {c: !!set d}"), one("a: '2001-01-01'\nb: {c: d}"));
  const Node binary = one("a: !!binary aGk=\nb: c");
  EXPECT_EQ(binary.find("b")->text, "c");
  EXPECT_EQ(sidetrack::testing::error_text([&] { (void)binary.find("a"); }), "line 1: 'a': !!binary: expected text");
}

// What is said of each document: its keys, or its problem.
std::string documents_of(const std::string& text) {
  std::string said;
  const Documents documents = parse_each_document(text, "a.yaml");
  for (const Document& document : documents.list) {
    said += fmt::format("{}", document.number);
    for (const Entry& entry : document.root.entries) said += fmt::format(" {}:{}", entry.key, entry.value.line);
    said += document.problem ? fmt::format(" {}\n", document.problem->what()) : "\n";
  }
  return said;
}

TEST(Read, ADocumentWithAProblemDoesNotEndTheOthers) {
  EXPECT_EQ(documents_of("a: 1\n---\nb: [\n---\nc: 1\n"),
            "1 a:1\n2 a.yaml, line 4: not YAML: did not find expected node content\n3 c:5\n");
  EXPECT_EQ(documents_of("a: \"x\n---\nb: *c\n--- # d\n\né: [d::]\n"),
            "1 a.yaml, line 2: not YAML: found unexpected document indicator\n2 a.yaml, line 3: '*c': there is no such "
            "anchor before it\n3 é:6\n");
  // What cannot follow a document is a part of it.
  EXPECT_EQ(documents_of("a: b\n- c\n---\nd: e\n"), "1 a.yaml, line 2: not YAML: did not find expected key\n2 d:4\n");
  EXPECT_EQ(documents_of("a: b\n...\n%X\n@\n---\nd: e\n--- [\n---\n---\n\t@\n"),
            documents_of("a: b\n...\n%X\n@\n---\nd: e\n--- [\n---\n---\n\t@\n"));
  EXPECT_EQ(documents_of("a: &x 1\n---\nb: [\n---\nc: *x\n").back(), '\n');
  std::string many;
  for (int i = 0; i < 100; ++i) many += "---\n[\n";
  EXPECT_EQ(parse_each_document(many + "---\na: b\n", "a.yaml").list.size(), 101U);
  EXPECT_THROW((void)parse_each_document(many + "---\n[\n", "a.yaml"), Error);
  EXPECT_EQ(error_of("a: 1\n---\nb: [\n---\nc: 1\n"), "a.yaml, line 4: not YAML: did not find expected node content");
}

// However many of them are broken, the values of all together are bounded.
TEST(Read, BrokenDocumentsCountForTheLimits) {
  std::string text;
  for (int i = 0; i < 5; ++i) text += "---\n[1, 2, 3, 4\n";
  EXPECT_THROW((void)parse_each_document(text, "a.yaml", {.nodes = 20}), Error);
  EXPECT_EQ(parse_each_document(text, "a.yaml", {.nodes = 25}).list.size(), 5U);
}

TEST(Read, KeysAreStrings) { EXPECT_EQ(one("8080: a\non: b\n"), one("'8080': a\n'true': b\n")); }

// As kubectl takes it, the last one counts, but not for what is read here.
TEST(Read, AKeyThatIsThereTwiceIsRefusedWhereItIsRead) {
  for (const std::string text : {"a: 1\nb: 2\na: 3\n", "b: 2\n'a': 1\na: 3\n", "{\"a\": 1, \"b\": 2,\n\n\"a\": 3}"}) {
    const Node root = parse_documents(text, "a.yaml").list[0].root;
    EXPECT_EQ(root.entries.size(), 2U);
    EXPECT_EQ(root.find("b")->text, "2");
    EXPECT_EQ(sidetrack::testing::error_text([&] { (void)root.find("a"); }), "line 3: 'a': duplicate key") << text;
    for (const Entry& entry : root.entries) {
      if (entry.key != "a") continue;
      EXPECT_EQ(entry.value.text, "3");
    }
  }
}

// libyaml refuses plain scalars in brackets that end with a colon.
TEST(Read, ColonsInBracketsAreTheirs) {
  const std::pair<std::string, std::string> all[] = {
      {"a: [1.2.3.4, 001:db8::]", "1.2.3.4|001:db8::"},
      {"a: [fd00::]", "fd00::"},
      {"\xEF\xBB\xBFé: x\na: [é::, 'b::', b:c, é:é::]", "é::|b::|b:c|é:é::"},
      {"{a: [x::, fd00::], b: c::}", "x::|fd00::"},
      {"# [fd00::]\na: [fd00::, 'fd00::x]'] # [fd00::]", "fd00::|fd00::x]"},
      {"é: [x::]\na: [!!str fd00::, &x fd01::,\n  fd02::, *x]", "fd00::|fd01::|fd02::|fd01::"},
      {"b: [\n---\na: [é::, !y fd00::]", "é::|fd00::"}};
  for (const auto& [text, expected] : all) {
    std::string said;
    const Node root = parse_each_document(text, "a.yaml").list.back().root;
    for (const Node& item : root.find("a")->items) said += (said.empty() ? "" : "|") + item.text;
    EXPECT_EQ(said, expected) << text;
  }
  EXPECT_THAT(sidetrack::testing::error_text([] { (void)parse_documents("a:\n- [b\n  c::]\n", "a.yaml"); }),
              HasSubstr("a.yaml, line 2: not YAML: found unexpected ':'"));
}

TEST(Read, SaysWhereWhatIsWrong) {
  const std::pair<std::string_view, std::string_view> all[] = {
      {"a: b: c\n", "a.yaml, line 1: not YAML: mapping values are not allowed"},
      {"a:\n\tb: 1\n", "line 2: not YAML: found character that cannot start any token; indent with spaces, not tabs"},
      {"a: *b\n", "a.yaml, line 1: '*b': there is no such anchor before it"},
      {"a: &a [*a]\n", "'*a': there is no such anchor before it"},
      {"a: 1\n---\nb: *b\n", "a.yaml, line 3: '*b'"},
      {"a: &x 1\n---\nb: *x\n", "line 3: '*x': there is no such anchor"},
      {"[1, 2]: 3\n", "line 1: a list as a key: expected a string"},
      {"~: 3\n", "line 1: null as a key: expected a string"},
      {"a: {<<: 5}\n", "'<<': a number: expected a mapping, or a list of mappings"},
      {"a: !!int x\n", "the tag 'tag:yaml.org,2002:int': not what the value is, a string; leave it out"},
      {"a: \"\\x\n", "a.yaml, line"},
      {"a: \x01\n", "not YAML: control characters are not allowed"},
      {"a: \xff\n", "not YAML: "},
      {"é: é\nb: @c\n", "line 2: not YAML: found character that cannot start any token; a value that begins with @ is"},
      {"*\n", "a value that begins with * is written in quotes"},
      {"b: *\n", "a value that begins with * is written in quotes"},
      {"{\"a\": ", "a.yaml, line"},
  };
  for (const auto& [text, expected] : all) {
    EXPECT_THAT(error_of(text), StartsWith("a.yaml")) << text;
    EXPECT_THAT(error_of(text), HasSubstr(expected)) << text;
  }
}

TEST(Read, DepthIsBounded) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(error_of(nested(deepest_node)), "no error");
  EXPECT_THAT(error_of(nested(deepest_node + 2)), HasSubstr("lists and mappings nested deeper than 100"));
  EXPECT_THAT(error_of(nested(100'000)), HasSubstr("nested deeper than 100"));
  std::string json;
  for (int i = 0; i < 100'000; ++i) json += R"({"a":)";
  EXPECT_THAT(error_of(json), HasSubstr("nested deeper than 100"));
  // Through aliases, too.
  std::string text = "a0: &a0 [" + nested(60) + "]\n";
  text += "a1: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[*a0]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n";
  EXPECT_THAT(error_of(text), HasSubstr("nested deeper than 100"));
}

// A billion laughs.
TEST(Read, AliasesDoNotMultiply) {
  std::string text = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 1; j < 10; ++j) text += ", " + before;
    text += "]\n";
  }
  EXPECT_THAT(error_of(text), HasSubstr("more than 100000 values that aliases stand for"));
}

TEST(Read, FilesThatCannotBeRead) {
  try {
    (void)read_documents("/does/not/exist.yaml");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "/does/not/exist.yaml: cannot be read: No such file or directory (ENOENT)");
    EXPECT_EQ(error.code(), ExitCode::usage);
  }
  EXPECT_THROW((void)read_documents("/dev/zero"), Error);
  EXPECT_THROW((void)read_documents("/"), Error);
  const sidetrack::testing::TemporaryFile file("a: 1\n");
  EXPECT_EQ(read_documents(file.path()).list.size(), 1U);
}

}  // namespace
}  // namespace sidetrack::manifest
