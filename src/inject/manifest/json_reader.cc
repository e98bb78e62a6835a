// SPDX-License-Identifier: GPL-2.0-or-later
// JSON by the events of nlohmann's parser: no document of its own is made, and the depth is bounded.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "inject/manifest/key_index.h"
#include "inject/manifest/read.h"
#include "model/error.h"
#include "model/printable.h"

namespace sidetrack::manifest {
namespace {

class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  // `nodes`: how many are read already, which grows.
  Builder(std::size_t most, std::size_t& nodes) : most_(most), nodes_(nodes) {}

  bool null() override { return add(Node::Type::null, "null"); }
  bool boolean(bool value) override { return add(Node::Type::boolean, value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return add(Node::Type::number, std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return add(Node::Type::number, std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return add(Node::Type::number, text); }
  bool string(string_t& text) override { return add(Node::Type::string, std::move(text)); }
  bool binary(binary_t&) override { return fail("binary data"); }

  bool start_object(std::size_t) override { return open(Node::Type::mapping); }
  bool start_array(std::size_t) override { return open(Node::Type::list); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& text) override {
    open_.back().key = std::move(text);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 3, column 7: … invalid string: ill-formed UTF-8 byte; last
    // read: '…'", "[json.exception.out_of_range.406] number overflow parsing '…'": what is quoted may be long.
    std::string_view words = error.what();
    words = words.substr(0, std::min(words.find("; last read: '"), words.find(" parsing '")));
    return fail("not JSON: " + printable(words.substr(std::min(words.find("] ") + 2, words.size()))));
  }

  Node root;
  std::string problem;

 private:
  struct Open {
    Node::Type type;
    std::vector<Node> items;     // of a list
    std::vector<Entry> entries;  // of a mapping
    std::string key;             // of the value to come, in a mapping
  };

  bool fail(std::string what) {
    problem = std::move(what);
    return false;
  }

  bool count() { return ++nodes_ <= most_ || fail(fmt::format("more than {} values", most_)); }

  bool add(Node::Type type, std::string text) {
    Node node;
    node.type = type;
    node.style = type == Node::Type::string ? Node::Style::double_quoted : Node::Style::plain;
    node.text = std::move(text);
    return count() && put(std::move(node));
  }

  bool put(Node node) {
    if (open_.empty()) {
      root = std::move(node);
    } else if (Open& parent = open_.back(); parent.type == Node::Type::list) {
      parent.items.push_back(std::move(node));
    } else {
      parent.entries.push_back({std::move(parent.key), Node::Style::double_quoted, std::move(node)});
    }
    return true;
  }

  bool open(Node::Type type) {
    if (open_.size() >= deepest_node)
      return fail(fmt::format("lists and mappings nested deeper than {}", deepest_node));
    open_.push_back({type, {}, {}, {}});
    return count();
  }

  bool close() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    if (const auto again = KeyIndex(closed.entries, &Entry::key).repeated())
      return fail(fmt::format("'{}': duplicate key", excerpt(closed.entries[*again].key)));
    Node node;
    node.type = closed.type;
    node.flow = true;
    node.items = std::move(closed.items);
    node.entries = std::move(closed.entries);
    return put(std::move(node));
  }

  std::vector<Open> open_;
  std::size_t most_;
  std::size_t& nodes_;
};

// Goes through the texts of a stream: one after the other, or separated by lines of "---", as kubectl takes both.
// Whether each is JSON is the parser's to say.
void each_text(std::string_view all, const std::function<void(std::string_view text)>& use) {
  constexpr std::string_view separator = "---";
  bool any = false;
  std::size_t begin = std::string_view::npos;
  std::size_t depth = 0;
  for (std::size_t at = 0; at < all.size(); ++at) {
    const char c = all[at];
    if (begin == std::string_view::npos) {
      const bool is_blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
      const bool separates = any && all.substr(at).starts_with(separator) && all[at - 1] == '\n';
      if (separates) at += separator.size() - 1;
      if (is_blank || separates) continue;
      begin = at;
    }
    if (c == '"') {
      for (++at; at < all.size() && all[at] != '"'; ++at) at += all[at] == '\\' ? 1 : 0;
    }
    if (c == '{' || c == '[') ++depth;
    const bool ends = (c == '}' || c == ']') && depth > 0 && --depth == 0;
    if (!ends) continue;
    use(all.substr(begin, at + 1 - begin));
    any = true;
    begin = std::string_view::npos;
  }
  if (begin != std::string_view::npos || !any) use(all.substr(std::min(begin, all.size())));
}

constexpr std::size_t longest_number = 1'000;

// nlohmann::json keeps the text of a number several times over: one of 8 MB takes 60 MiB.
bool has_long_number(std::string_view text) {
  std::size_t length = 0;
  for (std::size_t at = 0; at < text.size() && length <= longest_number; ++at) {
    const char c = text[at];
    if (c == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
    }
    length = std::string_view("0123456789+-.eE").find(c) != std::string_view::npos ? length + 1 : 0;
  }
  return length > longest_number;
}

}  // namespace

std::vector<Document> parse_json(std::string_view text, std::string_view name, const Limits& limits) {
  if (text.find('\0') != std::string_view::npos)  // to the parser the text ends there
    throw Error(ExitCode::usage, fmt::format("{}: not JSON: it has a zero byte", place(name, 0)));
  if (has_long_number(text))
    throw Error(ExitCode::usage,
                fmt::format("{}: a number of more than {} characters", place(name, 0), longest_number));
  std::vector<Document> made;
  std::size_t nodes = 0;
  each_text(text, [&](std::string_view each) {
    Builder builder(limits.nodes, nodes);
    const bool parsed = nlohmann::json::sax_parse(each.begin(), each.end(), &builder);
    if (!parsed) throw Error(ExitCode::usage, fmt::format("{}: {}", place(name, 0), builder.problem));
    made.push_back({std::move(builder.root), made.size() + 1});
  });
  return made;
}

}  // namespace sidetrack::manifest
