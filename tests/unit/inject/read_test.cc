// SPDX-License-Identifier: GPL-2.0-or-later
#include "inject/manifest/read.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cerrno>

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

std::string error_of_yaml(std::string_view text) {
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

// kubectl's reader lets the later one win, of keys and merge keys alike.
TEST(Read, MergeKeysReplaceWhatIsBeforeThem) {
  const std::string_view anchors = "x: &x {k: 1, l: 2}\ny: &y {k: 3, <<: *x, m: 4}\n";
  const std::pair<std::string_view, std::string_view> all[] = {{"{k: 5, <<: *x}", "{k: 1, l: 2}"},
                                                               {"{<<: *x, k: 5}", "{k: 5, l: 2}"},
                                                               {"{k: 5, <<: *x, l: 6}", "{k: 1, l: 6}"},
                                                               {"{<<: *x, <<: {l: 7}}", "{k: 1, l: 7}"},
                                                               {"{<<: {l: 7}, <<: *x}", "{l: 2, k: 1}"},
                                                               {"{<<: [{k: 8}, *x]}", "{k: 8, l: 2}"},
                                                               {"{k: 5, <<: []}", "{k: 5}"},
                                                               {"*y", "{k: 1, l: 2, m: 4}"},
                                                               {"{!!merge <<: *x}", "{k: 1, l: 2}"},
                                                               {"{!!merge '<<': *x}", "{k: 1, l: 2}"},
                                                               {"{k: 5, !!merge <<: *x}", "{k: 1, l: 2}"},
                                                               {"{!!str <<: 5}", "{'<<': 5}"},
                                                               {"{k: <<, l: !!merge m}", "{k: '<<', l: m}"}};
  for (const auto& [text, expected] : all) {
    const Node root = one(fmt::format("{}z: {}\n", anchors, text));
    EXPECT_EQ(*root.find("z"), one(expected)) << text;
    EXPECT_NO_THROW((void)root.find("z")->find("k"));
  }
  // A key of its own is there twice, whatever is merged between.
  const Node twice = one("z: {k: 1, <<: {k: 2}, k: 3}");
  EXPECT_EQ(sidetrack::testing::error_text([&] { (void)twice.find("z")->find("k"); }), "line 1: 'k': duplicate key");
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
            "1 a:1\n2 a.yaml, line 4, column 1: not YAML: did not find expected node content\n3 c:5\n");
  EXPECT_EQ(
      documents_of("a: \"x\n---\nb: *c\n--- # d\n\né: [d::]\n"),
      "1 a.yaml, line 2, column 1: not YAML: found unexpected end of stream\n2 a.yaml, line 3: '*c': there is no such "
      "anchor before it\n3 é:6\n");
  // What cannot follow a document is a part of it.
  EXPECT_EQ(documents_of("a: b\n- c\n---\nd: e\n"),
            "1 a.yaml, line 2, column 1: not YAML: did not find expected key\n2 d:4\n");
  EXPECT_EQ(documents_of("a: b\n...\n@\n---\nd: e\n"),
            "1 a.yaml, line 3, column 1: not YAML: found character that cannot start any token\n2 d:5\n");
  EXPECT_EQ(documents_of("a: &x 1\n---\nb: [\n---\nc: *x\n").back(), '\n');
  EXPECT_EQ(error_of_yaml("a: 1\n---\nb: [\n---\nc: 1\n"),
            "a.yaml, line 4, column 1: not YAML: did not find expected node content");
}

// The parser reads ahead, and ends for good at what it cannot read.
TEST(Read, ADocumentThatCannotBeReadDoesNotEndTheOthers) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    bomb += fmt::format("a{}: &a{} [", i, i);
    for (int j = 0; j < 10; ++j) bomb += fmt::format("*a{}, ", i - 1);
    bomb += "]\n";
  }
  const std::pair<std::string, std::string_view> all[] = {
      {"b: 1\nc: é\xff\n", "5, column 5: not YAML: invalid leading UTF-8 octet"},
      {"b: 1\n\n c: \x01\n", "6, column 5: not YAML: control characters are not allowed"},
      {std::string("b: \0\n", 5), "4, column 4: not YAML: control characters are not allowed"},
      {std::string("# c\n\xff\xfe"
                   "b\0:\0 \0c\0\n\0",
                   15),
       "5, column 1: not YAML: invalid leading UTF-8 octet"},
      {"b: 1\nc:\n  " + std::string(120, '[') + std::string(120, ']') + "\n", "6: lists and mappings nested deeper"},
      {bomb, "8: more than 100000 values that aliases stand for"},
  };
  for (const auto& [text, expected] : all) {
    std::string before, after;
    for (int i = 0; i < 300; ++i) {  // what is read ahead of is more than a buffer
      before += fmt::format("{}a: 1\n", i == 0 ? "" : "---\n");
      after += "---\nd: 1\n";
    }
    for (const bool is_far : {false, true}) {
      const std::string first = is_far ? before : "a: 1\n\n";
      const Documents documents = parse_each_document(first + "---\n" + text + after, "a.yaml");
      const std::size_t place = is_far ? 300 : 1;
      ASSERT_EQ(documents.list.size(), place + 301) << expected;
      for (std::size_t i = 0; i < documents.list.size(); ++i)
        EXPECT_EQ(documents.list[i].problem.has_value(), i == place) << expected << " " << i;
      EXPECT_EQ(documents.list.back().root.find("d")->text, "1");
      if (is_far) continue;
      EXPECT_THAT(documents.list[1].problem->what(), HasSubstr(expected));
      EXPECT_THAT(error_of_yaml(first + "---\n" + text + after), HasSubstr(expected));
    }
  }
}

TEST(Read, ManyBrokenDocumentsEndTheFile) {
  std::string many = "a: b\n";
  for (int i = 0; i < 100; ++i) many += "---\n[\n";
  EXPECT_FALSE(parse_each_document(many + "---\na: b\n", "a.yaml").list.back().problem);
  const Documents documents = parse_each_document(many + "---\n[\n---\na: b\n", "a.yaml");
  EXPECT_STREQ(documents.list.back().problem->what(),
               "a.yaml, line 202: more than 100 documents with an error: the rest is not read");
  EXPECT_EQ(documents.list.front().root.find("a")->text, "b");
}

// The values of all documents together are bounded. Those of a broken one are gone.
TEST(Read, BrokenDocumentsDoNotCountForTheLimits) {
  std::string text;
  for (int i = 0; i < 5; ++i) text += "---\n[1, 2, 3, 4, [\n---\n[1, 2, 3]\n";
  const Documents documents = parse_each_document(text, "a.yaml", {.nodes = 19});
  ASSERT_EQ(documents.list.size(), 10U);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(documents.list[i].problem.has_value(), i % 2 == 0 || i == 9) << i;
  EXPECT_THAT(documents.list[9].problem->what(), HasSubstr("line 20: more than 19 values"));
}

TEST(Read, DirectivesAreTheNextDocuments) {
  std::string tags;
  for (int i = 0; i < 101; ++i) tags += fmt::format("%TAG !a{}! x\n", i);
  EXPECT_EQ(documents_of("a: 1\n...\n" + tags + "---\nb: 2\n---\nc: 3\n"),
            "1 a:1\n2 a.yaml: more than 100 directives %TAG\n3 c:107\n");
  EXPECT_EQ(documents_of("%YAML 1.1\n---\na: 1\n"), "1 a:3\n");
  EXPECT_EQ(documents_of("# x\n%TAG !e! tag:x,\n\n--- # y\na: !e!z 1\n...\n\n# z\n%TAG !f! tag:x,\n---\nb: !f!z 1\n"),
            "1 a:5\n2 b:11\n");
  const Documents documents = parse_documents("a: 1\n...\n# x\n%YAML 1.1\n---\nb: 2\n", "a.yaml");
  EXPECT_EQ(documents.list[1].begin, documents.text.find('%'));
  EXPECT_EQ(documents_of("a: 1\n%YAML 1.1\n---\nb: 2\n"),
            "1 a.yaml, line 3, column 1: not YAML: did not find expected <document start>\n2 b:4\n");
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
      {"b: [\n---\na: [é::, !y fd00::]", "é::|fd00::"},
      {"a: [fd00::, 10.0.0.1]\nb: |\n  [fd01::]\nc: [fd02::]", "fd00::|10.0.0.1"},
      {"a: [fd00::]\nb: 'x [fd01::]\n\n  y'", "fd00::"}};
  for (const auto& [text, expected] : all) {
    std::string said;
    const Node root = parse_each_document(text, "a.yaml").list.back().root;
    for (const Node& item : root.find("a")->items) said += (said.empty() ? "" : "|") + item.text;
    EXPECT_EQ(said, expected) << text;
  }
  EXPECT_THAT(sidetrack::testing::error_text([] { (void)parse_documents("a:\n- [b\n  c::]\n", "a.yaml"); }),
              HasSubstr("a.yaml, line 2: not YAML: found unexpected ':'"));
  const Node root = parse_each_document("a: [fd00::]\nb: |\n  [fd01::]\n", "a.yaml").list.back().root;
  EXPECT_EQ(root.find("b")->text, "[fd01::]\n");
}

// Each is not a reason to begin anew.
TEST(Read, ColonsInBracketsMayBeMany) {
  std::string text;
  for (int i = 0; i < 5'000; ++i) text += fmt::format("a{}: [fd00::, fd01:{:x}::, 10.0.0.1]\n", i, i);
  const Node root = parse_each_document(text, "a.yaml").list.back().root;
  ASSERT_EQ(root.entries.size(), 5'000U);
  EXPECT_EQ(root.entries.back().value.items[1].text, "fd01:1387::");
}

TEST(Read, SaysWhereWhatIsWrong) {
  const std::pair<std::string_view, std::string_view> all[] = {
      {"a: b: c\n", "a.yaml, line 1, column 5: not YAML: mapping values are not allowed"},
      {"a:\n\tb: 1\n",
       "line 2, column 1: not YAML: found character that cannot start any token; indent with spaces, not tabs"},
      {"a: *b\n", "a.yaml, line 1: '*b': there is no such anchor before it"},
      {"a: &a [*a]\n", "'*a': there is no such anchor before it"},
      {"b: &a 1\na: &a {c: *a}\n", "a.yaml, line 2: '*a': there is no such anchor before it"},
      {"a: 1\n---\nb: *b\n", "a.yaml, line 3: '*b'"},
      {"a: &x 1\n---\nb: *x\n", "line 3: '*x': there is no such anchor"},
      {"[1, 2]: 3\n", "line 1: a list as a key: expected a string"},
      {"~: 3\n", "line 1: null as a key: expected a string"},
      {"a: {<<: 5}\n", "'<<': a number: expected a mapping, or a list of mappings"},
      {"a: {<<: null}\n", "'<<': null: expected a mapping, or a list of mappings"},
      {"a: {<<: [{}, [{}]]}\n", "'<<': a list: expected a mapping, or a list of mappings"},
      {"b: &b [{}]\na: {<<: *b}\n", "line 2: '<<': an alias of a list: expected a mapping, or a list of mappings"},
      {"a: !!int x\n", "the tag 'tag:yaml.org,2002:int': not what the value is, a string; leave it out"},
      {"a: \"\\x\n", "a.yaml, line"},
      {"a: \x01\n", "not YAML: control characters are not allowed"},
      {"a: \xff\n", "not YAML: "},
      {"é: é\nb: @c\n",
       "line 2, column 4: not YAML: found character that cannot start any token; a value that begins with @ is"},
      {"*\n", "a value that begins with * is written in quotes"},
      {"b: *\n", "a value that begins with * is written in quotes"},
      {"{\"a\": ", "a.yaml, line"},
  };
  for (const auto& [text, expected] : all) {
    EXPECT_THAT(error_of_yaml(text), StartsWith("a.yaml")) << text;
    EXPECT_THAT(error_of_yaml(text), HasSubstr(expected)) << text;
  }
}

TEST(Read, DepthIsBounded) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(error_of_yaml(nested(deepest_node)), "no error");
  EXPECT_THAT(error_of_yaml(nested(deepest_node + 2)), HasSubstr("lists and mappings nested deeper than 100"));
  EXPECT_THAT(error_of_yaml(nested(100'000)), HasSubstr("nested deeper than 100"));
  std::string json;
  for (int i = 0; i < 100'000; ++i) json += R"({"a":)";
  EXPECT_THAT(error_of_yaml(json), HasSubstr("nested deeper than 100"));
  // Through aliases, too.
  std::string text = "a0: &a0 [" + nested(60) + "]\n";
  text += "a1: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[*a0]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n";
  EXPECT_THAT(error_of_yaml(text), HasSubstr("nested deeper than 100"));
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
  EXPECT_THAT(error_of_yaml(text), HasSubstr("more than 100000 values that aliases stand for"));
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
