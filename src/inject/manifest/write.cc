// SPDX-License-Identifier: GPL-2.0-or-later
#include "inject/manifest/write.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "inject/manifest/scalar.h"
#include "model/printable.h"

namespace sidetrack::manifest {
namespace {

class JsonWriter {
 public:
  explicit JsonWriter(Layout layout) : indented_(layout == Layout::indented) {}

  std::string written(const Node& root) {
    write(root, 0);
    return std::move(text_);
  }

 private:
  void string(std::string_view text) {
    const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
    if (std::ranges::all_of(text, is_plain)) {
      text_.append(1, '"').append(text).append(1, '"');
    } else {
      // What is no UTF-8 does not get here: the readers refuse it.
      text_ += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    }
  }

  // Infinity, or a hexadecimal number of more than 64 bits, is none of JSON's.
  void number(const std::string& text) {
    if (text.find_first_not_of("0123456789+-.eE") == std::string::npos) {
      text_ += text;
    } else {
      string(text);
    }
  }

  void next_line(std::size_t depth) {
    if (indented_) text_.append(1, '\n').append(2 * depth, ' ');
  }

  void write(const Node& node, std::size_t depth) {
    switch (node.type) {
      case Node::Type::null:
        text_ += "null";
        return;
      case Node::Type::boolean:
        text_ += node.is_true() ? "true" : "false";
        return;
      case Node::Type::number:
        number(json_number(node.text));
        return;
      case Node::Type::string:
        string(node.text);
        return;
      case Node::Type::list:
        collection('[', ']', node.items, depth, [&](const Node& item) { write(item, depth + 1); });
        return;
      case Node::Type::mapping:
        collection('{', '}', node.entries, depth, [&](const Entry& entry) {
          string(entry.key);
          text_ += indented_ ? ": " : ":";
          write(entry.value, depth + 1);
        });
        return;
    }
  }

  template <typename Items, typename WriteItem>
  void collection(char begin, char end, const Items& items, std::size_t depth, WriteItem write_item) {
    text_ += begin;
    for (const auto& item : items) {
      if (&item != &items.front()) text_ += ',';
      next_line(depth + 1);
      write_item(item);
    }
    if (!items.empty()) next_line(depth);
    text_ += end;
  }

  bool indented_;
  std::string text_;
};

constexpr std::string_view mark = "---\n";

}  // namespace

std::string json_text(const Node& root, Layout layout) { return JsonWriter(layout).written(root); }

std::string written(Documents& documents, const Change& change) {
  const std::string_view all = documents.text;
  std::string text;
  bool any = false;
  for (std::size_t i = 0; i < documents.list.size(); ++i) {
    Document& document = documents.list[i];
    // What is before the first, comments, is its own.
    const std::size_t begin = i == 0 ? 0 : document.begin;
    const std::size_t end = i + 1 < documents.list.size() ? documents.list[i + 1].begin : all.size();
    const bool is_changed = change(document);
    any |= is_changed;
    if (documents.form == Form::json) {
      text += json_text(document.root, Layout::indented) + "\n";
    } else if (is_changed) {
      if (document.marked) text += mark;
      text += yaml_text(document.root);
    } else {
      text += all.substr(begin, end - begin);
    }
    document.root = {};
  }
  return any ? text : documents.text;
}

}  // namespace sidetrack::manifest
