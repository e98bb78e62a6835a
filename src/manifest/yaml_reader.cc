// SPDX-License-Identifier: GPL-2.0-or-later
// YAML by libyaml's events, which keep the style of every scalar.
#include <fmt/format.h>
#include <yaml.h>

#include <algorithm>
#include <functional>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <utility>

#include "manifest/read.h"
#include "manifest/scalar.h"
#include "model/error.h"
#include "model/printable.h"

namespace sidetrack::manifest {
namespace {

// What an alias stands for.
struct Anchored {
  Node node;
  std::size_t nodes = 0;
  std::size_t bytes = 0;  // of their texts
  std::size_t depth = 0;
};

class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { yaml_event_delete(&event_); }
  yaml_event_t* get() { return &event_; }
  const yaml_event_t* operator->() const { return &event_; }

 private:
  yaml_event_t event_{};
};

std::string_view text_of(const yaml_char_t* text) {
  return text == nullptr ? std::string_view() : reinterpret_cast<const char*>(text);
}

Node::Style style_of(yaml_scalar_style_t style) {
  switch (style) {
    case YAML_SINGLE_QUOTED_SCALAR_STYLE:
      return Node::Style::single_quoted;
    case YAML_DOUBLE_QUOTED_SCALAR_STYLE:
      return Node::Style::double_quoted;
    case YAML_LITERAL_SCALAR_STYLE:
      return Node::Style::literal;
    case YAML_FOLDED_SCALAR_STYLE:
      return Node::Style::folded;
    default:
      return Node::Style::plain;
  }
}

// Lists the tags that choose the type of a scalar. Any other makes it a string, as in kubectl's reader, which ignores
// those of a list or mapping.
struct Tag {
  std::string_view name;
  Node::Type type;
};
constexpr Tag tag_table[] = {{YAML_NULL_TAG, Node::Type::null},
                             {YAML_BOOL_TAG, Node::Type::boolean},
                             {YAML_INT_TAG, Node::Type::number},
                             {YAML_FLOAT_TAG, Node::Type::number}};
constexpr std::string_view binary_tag = "tag:yaml.org,2002:binary";

// Where libyaml refuses what YAML 1.1 allows and kubectl takes: a plain scalar in brackets that ends with a colon, as
// in [fd00::].
constexpr char in_place_of_colon = 'x';
struct ColonRefused {
  std::size_t byte;
};

// Reports what libyaml says of the text. It cannot go on in that document.
struct SyntaxError {
  Error error;
  std::size_t byte;
};
constexpr std::size_t most_broken_documents = 100;

class Reader {
 public:
  // `colons`: the bytes of `text` that stand for colons, in order.
  Reader(std::string_view text, std::string_view name, const Limits& limits, const std::set<std::size_t>& colons)
      : text_(text), name_(name), limits_(limits), colons_(colons) {
    begin_at(0);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { yaml_parser_delete(&parser_); }

  std::vector<Document> documents() {
    refuse_many_tags();
    std::vector<Document> made;
    std::size_t broken = 0;
    while (true) {
      const std::size_t complete = made.size();
      try {
        if (!read_document(made)) return made;
      } catch (const SyntaxError& found) {
        if (++broken > most_broken_documents) throw found.error;
        // Outside of any document it is what follows the last one, unless another begins before it.
        if (made.empty() || (made.size() == complete && next_marker(made.back().begin + 1) <= found.byte))
          made.push_back({{}, complete + 1, base_, false});
        made.back().root = {};
        made.back().problem = found.error;
        const std::size_t next = next_marker(std::max(found.byte, base_ + 1));
        if (next == std::string_view::npos) return made;
        yaml_parser_delete(&parser_);
        begin_at(next);
      }
    }
  }

 private:
  // The parser counts characters and lines from there.
  void begin_at(std::size_t byte) {
    if (yaml_parser_initialize(&parser_) == 0) throw std::bad_alloc();
    const std::string_view text = text_.substr(byte);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
    lines_before_ += static_cast<std::size_t>(std::ranges::count(text_.substr(base_, byte - base_), '\n'));
    base_ = byte;
    known_ = first_character();
  }

  // The next line that begins a document, as kubectl takes files apart before it reads them.
  [[nodiscard]] std::size_t next_marker(std::size_t from) const {
    constexpr std::string_view marker = "---", blanks = " \t\r\n";
    for (std::size_t at = text_.find(marker, from); at != std::string_view::npos; at = text_.find(marker, at + 1)) {
      const std::size_t end = at + marker.size();
      if ((at == 0 || text_[at - 1] == '\n') && (end == text_.size() || blanks.find(text_[end]) != blanks.npos))
        return at;
    }
    return std::string_view::npos;
  }

  // Adds the next one, if there is one.
  bool read_document(std::vector<Document>& made) {
    Event event;
    do {
      yaml_event_delete(event.get());
      next(event);
      if (event->type == YAML_STREAM_END_EVENT) return false;
    } while (event->type != YAML_DOCUMENT_START_EVENT);  // the start of the stream, the end of a document
    anchors_.clear();
    problem_.reset();
    const bool marked = event->data.document_start.implicit == 0;
    made.push_back({{}, made.size() + 1, byte_at(event->start_mark.index), marked});
    Node root = next_node(0);
    if (!problem_) made.back().root = std::move(root);
    made.back().problem = problem_;
    return true;
  }

  [[nodiscard]] std::uint32_t line(const Event& event) const {
    return static_cast<std::uint32_t>(lines_before_ + event->start_mark.line + 1);
  }

  // Notes what is wrong with the document that is being read. The others are read all the same.
  void note(std::size_t line, const std::string& problem, std::string hint = {}) {
    if (!problem_)
      problem_.emplace(ExitCode::usage, fmt::format("{}: {}", place(name_, line), problem), std::move(hint));
  }

  [[noreturn]] void refuse(std::size_t line, const std::string& problem, std::string hint = {}) const {
    throw Error(ExitCode::usage, fmt::format("{}: {}", place(name_, line), problem), std::move(hint));
  }

  // libyaml compares each directive with all before it.
  void refuse_many_tags() const {
    constexpr std::string_view directive = "%TAG";
    constexpr std::string_view ends_of_lines = "\n\r\x85\xA8\xA9";  // of U+0085, U+2028 and U+2029 the last byte
    constexpr std::size_t most = 100;
    std::size_t count = 0;
    for (auto at = text_.find(directive); at != std::string_view::npos; at = text_.find(directive, at + 1)) {
      if (at > 0 && ends_of_lines.find(text_[at - 1]) == std::string_view::npos) continue;
      if (++count > most) refuse(0, fmt::format("more than {} directives {}", most, directive), "leave them out");
    }
  }

  void next(Event& event) {
    if (yaml_parser_parse(&parser_, event.get()) != 0) return;
    if (parser_.error == YAML_MEMORY_ERROR) throw std::bad_alloc();
    const std::string_view problem = parser_.problem == nullptr ? "it cannot be parsed" : parser_.problem;
    if (problem == "found unexpected ':'") throw ColonRefused{byte_at(parser_.mark.index)};
    const std::string words = fmt::format("not YAML: {}", problem);
    if (parser_.error == YAML_READER_ERROR) refuse(lines_before_ + parser_.mark.line + 1, words);
    const std::size_t byte = byte_at(parser_.problem_mark.index);
    throw SyntaxError{
        Error(ExitCode::usage,
              fmt::format("{}: {}", place(name_, lines_before_ + parser_.problem_mark.line + 1), words), hint_at(byte)),
        byte};
  }

  struct Position {
    std::size_t character = 0;
    std::size_t byte = 0;
  };

  // libyaml counts characters, without the byte order mark.
  [[nodiscard]] Position first_character() const {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    return {0, base_ + (text_.substr(base_).starts_with(byte_order_mark) ? byte_order_mark.size() : 0)};
  }

  // Goes on from the last answer: what is asked for comes in order but for an error.
  [[nodiscard]] std::size_t byte_at(std::size_t character) {
    if (character < known_.character) known_ = first_character();
    const auto continues = [&](std::size_t byte) { return (static_cast<unsigned char>(text_[byte]) & 0xC0U) == 0x80U; };
    while (known_.character < character && known_.byte < text_.size()) {
      ++known_.character;
      do ++known_.byte;
      while (known_.byte < text_.size() && continues(known_.byte));
    }
    return known_.byte;
  }

  // The mistakes that libyaml's words do not tell.
  [[nodiscard]] std::string hint_at(std::size_t index) const {
    const char c = index < text_.size() ? text_[index] : ' ';
    const char before = index > 0 && index <= text_.size() ? text_[index - 1] : ' ';
    if (c == '\t') return "indent with spaces, not tabs";
    if (before == '*') return "a value that begins with * is written in quotes: '*'";
    if (c == '@' || c == '%' || c == '`') return fmt::format("a value that begins with {} is written in quotes", c);
    return "";
  }

  Node next_node(std::size_t depth) {
    Event event;
    next(event);
    return node(event, depth);
  }

  // What begins with this event; alone, its anchor is known afterwards.
  Node node(Event& event, std::size_t depth) {
    if (event->type == YAML_ALIAS_EVENT) return alias(event, depth);
    count(event, 1, depth);
    const std::size_t nodes_before = nodes_ - 1;
    const std::size_t bytes_before = bytes_;
    const std::size_t deepest_before = std::exchange(deepest_, depth);
    std::string anchor;
    Node made;
    switch (event->type) {
      case YAML_SEQUENCE_START_EVENT:
        anchor = text_of(event->data.sequence_start.anchor);
        made = list(event, depth);
        break;
      case YAML_MAPPING_START_EVENT:
        anchor = text_of(event->data.mapping_start.anchor);
        made = mapping(event, depth);
        break;
      default:
        anchor = text_of(event->data.scalar.anchor);
        made = scalar(event);
        bytes_ += made.text.size();
        break;
    }
    if (!anchor.empty()) {
      anchors_.insert_or_assign(anchor, Anchored{made, nodes_ - nodes_before, bytes_ - bytes_before, deepest_ - depth});
    }
    deepest_ = std::max(deepest_, deepest_before);
    return made;
  }

  void count(const Event& event, std::size_t nodes, std::size_t depth) {
    nodes_ += nodes;
    deepest_ = std::max(deepest_, depth);
    if (depth > deepest_node)
      refuse(line(event), fmt::format("lists and mappings nested deeper than {}", deepest_node));
    if (nodes_ > limits_.nodes)
      refuse(line(event), fmt::format("more than {} values, with those that aliases stand for", limits_.nodes));
  }

  Node alias(const Event& event, std::size_t depth) {
    const std::string name(text_of(event->data.alias.anchor));
    const auto found = anchors_.find(name);
    if (found == anchors_.end()) {
      note(line(event), fmt::format("'*{}': there is no such anchor before it", excerpt(name)));
      return {};
    }
    aliased_ += found->second.nodes;
    if (aliased_ > most_aliased)
      refuse(line(event), fmt::format("more than {} values that aliases stand for", most_aliased));
    bytes_ += found->second.bytes;
    aliased_bytes_ += found->second.bytes;
    if (aliased_bytes_ > limits_.aliased_bytes)
      refuse(line(event), fmt::format("more than {} bytes that aliases stand for", limits_.aliased_bytes));
    count(event, found->second.nodes, depth + found->second.depth);
    return found->second.node;
  }

  // The type that a tag of a scalar says; `without`: the one that it has without a tag.
  Node::Type tagged_type(const Event& event, std::string_view tag, Node::Type without) {
    const auto* const found = std::ranges::find(tag_table, tag, &Tag::name);
    if (found == std::end(tag_table)) return Node::Type::string;
    if (found->type != without)
      note(line(event), fmt::format("the tag '{}': not what the value is, {}", excerpt(tag), manifest::name(without)),
           "leave it out");
    return found->type;
  }

  Node scalar(const Event& event) {
    const auto& given = event->data.scalar;
    Node made;
    made.line = line(event);
    made.text.assign(reinterpret_cast<const char*>(given.value), given.length);
    made.style = style_of(given.style);
    if (made.style == Node::Style::plain) put_colons(event, made.text);
    // A number in quotes with the tag !!int is a number.
    const bool is_tagged = !text_of(given.tag).empty();
    made.type = made.style == Node::Style::plain || is_tagged ? type_of_plain(made.text) : Node::Type::string;
    if (is_tagged) {
      made.type = tagged_type(event, text_of(given.tag), made.type);
      if (text_of(given.tag) == binary_tag) made.fault = Node::Fault::binary;
      made.style = made.type == Node::Type::string ? Node::Style::double_quoted : Node::Style::plain;
    }
    return made;
  }

  // A tag or an anchor may stand before the text, which ends where the event does.
  void put_colons(const Event& event, std::string& text) {
    if (colons_.empty()) return;
    const std::size_t end = byte_at(event->end_mark.index);
    const std::size_t begin = end - std::min(end, text.size());
    const bool on_one_line = text_.substr(begin, end - begin) == text;
    const auto first = colons_.lower_bound(on_one_line ? begin : byte_at(event->start_mark.index));
    for (auto colon = first; colon != colons_.end() && *colon < end; ++colon) {
      if (!on_one_line) return note(line(event), "not YAML: found unexpected ':'", "write the value in quotes");
      text[*colon - begin] = ':';
    }
  }

  Node list(const Event& event, std::size_t depth) {
    Node made;
    made.type = Node::Type::list;
    made.flow = event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
    made.line = line(event);
    std::vector<Node> items;
    while (true) {
      Event item;
      next(item);
      if (item->type == YAML_SEQUENCE_END_EVENT) break;
      items.push_back(node(item, depth + 1));
    }
    made.items = std::move(items);
    return made;
  }

  Node mapping(const Event& event, std::size_t depth) {
    Node made;
    made.type = Node::Type::mapping;
    made.flow = event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
    made.line = line(event);
    std::vector<Node> merged;
    std::vector<Entry> entries;
    std::map<std::string, std::size_t, std::less<>> keys;  // their places among the entries
    while (true) {
      Event event_of_key;
      next(event_of_key);
      if (event_of_key->type == YAML_MAPPING_END_EVENT) break;
      Node key = node(event_of_key, depth + 1);
      if (key.type == Node::Type::string && key.style == Node::Style::plain && key.text == "<<") {
        add_merged(merged, next_node(depth + 1), key.line);
        continue;
      }
      if (!key.is_scalar() || key.is_null())
        note(key.line, fmt::format("{} as a key: expected a string", name_of(key)));
      const std::uint32_t line = key.line;
      Entry entry = entry_of(std::move(key));
      entry.value = next_node(depth + 1);
      const auto [known, is_new] = keys.emplace(entry.key, entries.size());
      if (is_new) {
        entries.push_back(std::move(entry));
      } else {
        entry.value.fault = Node::Fault::repeated;
        entry.value.line = line;
        entries[known->second] = std::move(entry);
      }
    }
    // A key of its own counts before a merged one, an earlier merged one before a later one.
    for (const Node& source : merged) {
      for (const Entry& entry : source.entries) {
        if (keys.emplace(entry.key, entries.size()).second) entries.push_back(entry);
      }
    }
    made.entries = std::move(entries);
    return made;
  }

  static std::string name_of(const Node& node) { return std::string(manifest::name(node.type)); }

  static Entry entry_of(Node key) {
    if (key.type == Node::Type::string) return {std::move(key.text), key.style, {}};
    std::string text = key_of_plain(key.text);
    const auto style = text == key.text ? Node::Style::plain : Node::Style::double_quoted;
    return {std::move(text), style, {}};
  }

  void add_merged(std::vector<Node>& merged, Node value, std::uint32_t line) {
    if (value.type == Node::Type::mapping) {
      merged.push_back(std::move(value));
      return;
    }
    const auto is_mapping = [](const Node& item) { return item.type == Node::Type::mapping; };
    if (value.type != Node::Type::list || !std::ranges::all_of(value.items, is_mapping))
      return note(line, fmt::format("'<<': {}: expected a mapping, or a list of mappings", name_of(value)));
    std::ranges::copy(value.items, std::back_inserter(merged));
  }

  yaml_parser_t parser_{};
  std::string_view text_;
  std::string_view name_;
  std::size_t base_ = 0;          // the byte where the parser began
  std::size_t lines_before_ = 0;  // that
  Position known_;                // of byte_at()
  std::optional<Error> problem_;  // of the document that is being read
  std::map<std::string, Anchored, std::less<>> anchors_;
  Limits limits_;
  const std::set<std::size_t>& colons_;
  std::size_t nodes_ = 0;
  std::size_t bytes_ = 0;  // of the texts of those
  std::size_t aliased_ = 0;
  std::size_t aliased_bytes_ = 0;
  std::size_t deepest_ = 0;  // of what is being read
};

}  // namespace

std::vector<Document> parse_yaml(std::string_view text, std::string_view name, const Limits& limits) {
  constexpr std::size_t most_bytes = 64U << 20;  // that are read again
  std::set<std::size_t> colons;
  std::string patched;
  while (true) {
    try {
      return Reader(patched.empty() ? text : patched, name, limits, colons).documents();
    } catch (const ColonRefused& found) {
      if (!colons.insert(found.byte).second || colons.size() * text.size() > most_bytes)
        throw Error(
            ExitCode::usage,
            fmt::format(
                "{}: not YAML: found unexpected ':'",
                place(name, 1 + static_cast<std::size_t>(std::ranges::count(text.substr(0, found.byte), '\n')))),
            "write the value in quotes");
      if (patched.empty()) patched = text;
      patched[found.byte] = in_place_of_colon;
    }
  }
}

}  // namespace sidetrack::manifest
