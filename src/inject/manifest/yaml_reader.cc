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

#include "inject/manifest/read.h"
#include "inject/manifest/scalar.h"
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
constexpr std::string_view merge_tag = "tag:yaml.org,2002:merge";

// Where libyaml refuses what YAML 1.1 allows and kubectl takes: a plain scalar in brackets that ends with a colon, as
// in [fd00::].
constexpr char in_place_of_colon = 'x';
struct ColonRefused {
  std::size_t byte;
};

constexpr std::size_t most_broken_documents = 100;

// What all documents of a file have together.
struct Counts {
  std::size_t nodes = 0;
  std::size_t bytes = 0;  // of the texts of those
  std::size_t aliased = 0;
  std::size_t aliased_bytes = 0;
};

// The part of a file that has one document.
struct Part {
  std::string_view text;
  std::size_t begin = 0;         // its byte in the file
  std::size_t lines_before = 0;  // in the file
};

// Whether a byte of UTF-8 is not the first of its character.
bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

Error not_yaml(const Part& part, std::string_view name, std::size_t byte, std::string_view problem, std::string hint) {
  const std::string_view before = part.text.substr(0, byte);
  const std::string_view of_line = before.substr(before.find_last_of('\n') + 1);
  const auto line = 1 + part.lines_before + static_cast<std::size_t>(std::ranges::count(before, '\n'));
  const auto column = 1 + of_line.size() - static_cast<std::size_t>(std::ranges::count_if(of_line, continues));
  return {ExitCode::usage, fmt::format("{}, column {}: not YAML: {}", place(name, line), column, problem),
          std::move(hint)};
}

class Reader {
 public:
  // `colons`: the bytes of the text that stand for colons, in order. `counts` grow.
  Reader(const Part& part, std::string_view name, const Limits& limits, const std::set<std::size_t>& colons,
         Counts& counts)
      : part_(part), text_(part.text), name_(name), limits_(limits), colons_(colons), counts_(counts) {
    if (yaml_parser_initialize(&parser_) == 0) throw std::bad_alloc();
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text_.data()), text_.size());
    known_ = first_character();
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { yaml_parser_delete(&parser_); }

  // Whether each of those colons was in a plain scalar.
  [[nodiscard]] bool has_put_all_colons() const { return colons_put_ == colons_.size(); }

  // The document; nothing if there are only comments. What cannot follow a document is a part of it.
  std::optional<Document> document() {
    constexpr std::string_view marker = "---";
    Document made{{}, 0, part_.begin, text_.starts_with(marker)};
    try {
      refuse_many_tags();
      Event event;
      skip_to(event, YAML_DOCUMENT_START_EVENT);
      if (event->type == YAML_STREAM_END_EVENT) return std::nullopt;
      made.begin = part_.begin + byte_at(event->start_mark.index);
      made.marked = event->data.document_start.implicit == 0;
      Node root = next_node(0);
      skip_to(event, YAML_STREAM_END_EVENT);
      made.root = std::move(root);
    } catch (const Error& error) {
      made.problem = error;
    }
    return made;
  }

 private:
  void skip_to(Event& event, yaml_event_type_t type) {
    do {
      yaml_event_delete(event.get());
      next(event);
    } while (event->type != type && event->type != YAML_STREAM_END_EVENT);
  }

  [[nodiscard]] std::uint32_t line(const Event& event) const {
    return static_cast<std::uint32_t>(part_.lines_before + event->start_mark.line + 1);
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
    const bool is_of_reader = parser_.error == YAML_READER_ERROR;
    const std::size_t byte = is_of_reader ? parser_.problem_offset : byte_at(parser_.problem_mark.index);
    throw not_yaml(part_, name_, byte, problem, hint_at(byte));
  }

  struct Position {
    std::size_t character = 0;
    std::size_t byte = 0;
  };

  // libyaml counts characters, without the byte order mark.
  [[nodiscard]] Position first_character() const {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    return {0, text_.starts_with(byte_order_mark) ? byte_order_mark.size() : 0};
  }

  // Goes on from the last answer: what is asked for comes in order but for an error.
  [[nodiscard]] std::size_t byte_at(std::size_t character) {
    if (character < known_.character) known_ = first_character();
    while (known_.character < character && known_.byte < text_.size()) {
      ++known_.character;
      do ++known_.byte;
      while (known_.byte < text_.size() && continues(text_[known_.byte]));
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
    const std::size_t nodes_before = counts_.nodes - 1;
    const std::size_t bytes_before = counts_.bytes;
    const std::size_t deepest_before = std::exchange(deepest_, depth);
    std::string anchor;
    Node made;
    switch (event->type) {
      case YAML_SEQUENCE_START_EVENT:
        anchor = text_of(event->data.sequence_start.anchor);
        anchors_.erase(anchor);  // none of its own parts can be an alias of it, or of an earlier one of the name
        made = list(event, depth);
        break;
      case YAML_MAPPING_START_EVENT:
        anchor = text_of(event->data.mapping_start.anchor);
        anchors_.erase(anchor);
        made = mapping(event, depth);
        break;
      default:
        anchor = text_of(event->data.scalar.anchor);
        made = scalar(event);
        counts_.bytes += made.text.size();
        break;
    }
    if (!anchor.empty()) {
      anchors_.insert_or_assign(
          anchor, Anchored{made, counts_.nodes - nodes_before, counts_.bytes - bytes_before, deepest_ - depth});
    }
    deepest_ = std::max(deepest_, deepest_before);
    return made;
  }

  void count(const Event& event, std::size_t nodes, std::size_t depth) {
    counts_.nodes += nodes;
    deepest_ = std::max(deepest_, depth);
    if (depth > deepest_node)
      refuse(line(event), fmt::format("lists and mappings nested deeper than {}", deepest_node));
    if (counts_.nodes > limits_.nodes)
      refuse(line(event), fmt::format("more than {} values, with those that aliases stand for", limits_.nodes));
  }

  Node alias(const Event& event, std::size_t depth) {
    const std::string name(text_of(event->data.alias.anchor));
    const auto found = anchors_.find(name);
    if (found == anchors_.end())
      refuse(line(event), fmt::format("'*{}': there is no such anchor before it", excerpt(name)));
    counts_.aliased += found->second.nodes;
    if (counts_.aliased > most_aliased)
      refuse(line(event), fmt::format("more than {} values that aliases stand for", most_aliased));
    counts_.bytes += found->second.bytes;
    counts_.aliased_bytes += found->second.bytes;
    if (counts_.aliased_bytes > limits_.aliased_bytes)
      refuse(line(event), fmt::format("more than {} bytes that aliases stand for", limits_.aliased_bytes));
    count(event, found->second.nodes, depth + found->second.depth);
    return found->second.node;
  }

  // The type that a tag of a scalar says; `without`: the one that it has without a tag.
  Node::Type tagged_type(const Event& event, std::string_view tag, Node::Type without) {
    const auto* const found = std::ranges::find(tag_table, tag, &Tag::name);
    if (found == std::end(tag_table)) return Node::Type::string;
    if (found->type != without)
      refuse(line(event), fmt::format("the tag '{}': not what the value is, {}", excerpt(tag), manifest::name(without)),
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
      if (!on_one_line) refuse(line(event), "not YAML: found unexpected ':'", "write the value in quotes");
      text[*colon - begin] = ':';
      ++colons_put_;
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
    std::vector<Entry> entries;
    struct Known {
      std::size_t place;  // among the entries
      bool is_merged;
    };
    std::map<std::string, Known, std::less<>> keys;
    // The last one counts, as for kubectl.
    const auto put = [&](Entry entry, bool is_merged, std::uint32_t line) {
      const auto [found, is_new] = keys.emplace(entry.key, Known{entries.size(), is_merged});
      if (is_new) return entries.push_back(std::move(entry));
      auto& known = found->second;
      if (!is_merged && !known.is_merged) {
        entry.value.fault = Node::Fault::repeated;
        entry.value.line = line;
      }
      known.is_merged &= is_merged;
      entries[known.place] = std::move(entry);
    };
    while (true) {
      Event event_of_key;
      next(event_of_key);
      if (event_of_key->type == YAML_MAPPING_END_EVENT) break;
      const bool is_merge = is_merge_key(event_of_key);
      Node key = node(event_of_key, depth + 1);
      if (is_merge) {
        for (const Node& source : merged(depth + 1, key.line)) {
          for (const Entry& entry : source.entries) put(entry, true, key.line);
        }
        continue;
      }
      if (!key.is_scalar() || key.is_null())
        refuse(key.line, fmt::format("{} as a key: expected a string", name(key.type)));
      const std::uint32_t line = key.line;
      Entry entry = entry_of(std::move(key));
      entry.value = next_node(depth + 1);
      put(std::move(entry), false, line);
    }
    made.entries = std::move(entries);
    return made;
  }

  static Entry entry_of(Node key) {
    if (key.type == Node::Type::string) return {std::move(key.text), key.style, {}};
    std::string text = key_of_plain(key.text);
    const auto style = text == key.text ? Node::Style::plain : Node::Style::double_quoted;
    return {std::move(text), style, {}};
  }

  // As kubectl's reader has it.
  static bool is_merge_key(const Event& event) {
    if (event->type != YAML_SCALAR_EVENT) return false;
    const auto& key = event->data.scalar;
    return text_of(key.value) == "<<" && (key.plain_implicit != 0 || text_of(key.tag) == merge_tag);
  }

  // The mappings of a merge key, which counts for the keys after it and before it, the one that counts most at the end.
  std::vector<Node> merged(std::size_t depth, std::uint32_t line) {
    Event event;
    next(event);
    const bool is_alias = event->type == YAML_ALIAS_EVENT;
    Node value = node(event, depth);
    if (value.type == Node::Type::mapping) return {std::move(value)};
    const auto is_mapping = [](const Node& item) { return item.type == Node::Type::mapping; };
    if (value.type != Node::Type::list || is_alias || !std::ranges::all_of(value.items, is_mapping))
      refuse(line, fmt::format("'<<': {}{}: expected a mapping, or a list of mappings", is_alias ? "an alias of " : "",
                               name(value.type)));
    return {value.items.get().rbegin(), value.items.get().rend()};
  }

  yaml_parser_t parser_{};
  Part part_;
  std::string_view text_;
  std::string_view name_;
  Position known_;  // of byte_at()
  std::map<std::string, Anchored, std::less<>> anchors_;
  Limits limits_;
  const std::set<std::size_t>& colons_;
  std::size_t colons_put_ = 0;
  Counts& counts_;
  std::size_t deepest_ = 0;  // of what is being read
};

constexpr std::string_view ends_of_lines[] = {"\n", "\r", "\u0085", "\u2028", "\u2029"};

// The next line that begins a document, from a byte on: kubectl takes files apart there before it reads them.
std::size_t next_marker(std::string_view text, std::size_t from) {
  constexpr std::string_view marker = "---";
  for (std::size_t at = text.find(marker, from); at != std::string_view::npos; at = text.find(marker, at + 1)) {
    const std::string_view before = text.substr(0, at), after = text.substr(at + marker.size());
    const auto is_before = [&](std::string_view end) { return before.ends_with(end); };
    const auto is_after = [&](std::string_view blank) { return after.starts_with(blank); };
    if ((before.empty() || std::ranges::any_of(ends_of_lines, is_before)) &&
        (after.empty() || is_after(" ") || is_after("\t") || std::ranges::any_of(ends_of_lines, is_after)))
      return at;
  }
  return text.size();
}

// Where the directives of the document begin that has its "---" there. They are those of the document, if they stand
// at the beginning, or after a line of "...".
std::size_t begin_of_directives(std::string_view text, std::size_t begin, std::size_t marker) {
  std::size_t first = marker;
  for (std::size_t end = marker; end > begin;) {
    const std::size_t line = end < 2 ? 0 : text.find_last_of('\n', end - 2) + 1;
    const std::string_view words = text.substr(line, end - line);
    if (words.starts_with('%')) {
      first = line;
    } else if (const auto word = words.find_first_not_of(" \t\r\n"); word != words.npos && words[word] != '#') {
      return words.starts_with("...") ? first : marker;
    }
    end = line;
  }
  return first;
}

std::size_t end_of_document(std::string_view text, std::size_t begin) {
  std::size_t marker = begin;
  do marker = next_marker(text, marker + 1);
  while (marker < text.size() && begin_of_directives(text, begin, marker) == begin);
  return marker == text.size() ? marker : begin_of_directives(text, begin, marker);
}

// The colons that libyaml would refuse in what looks like lists of addresses: [fd00::, 10.0.0.1].
std::set<std::size_t> colons_of_addresses(std::string_view text) {
  constexpr std::string_view of_addresses = "0123456789abcdefABCDEF:./, \t\r\n";
  constexpr std::string_view ends_of_items = ",] \t\r\n";
  std::set<std::size_t> found;
  for (std::size_t begin = text.find('['); begin != text.npos; begin = text.find('[', begin + 1)) {
    const std::size_t end = text.find_first_not_of(of_addresses, begin + 1);
    if (end == text.npos || text[end] != ']') continue;
    for (std::size_t at = text.find(':', begin); at < end; at = text.find(':', at + 1)) {
      if (ends_of_items.find(text[at + 1]) != ends_of_items.npos) found.insert(found.end(), at);
    }
  }
  return found;
}

// `again`: the bytes that were read once more, of all documents.
std::optional<Document> read(const Part& part, std::string_view name, const Limits& limits, Counts& counts,
                             std::size_t& again) {
  constexpr std::size_t most_again = 64U << 20;
  const Counts before = counts;
  std::set<std::size_t> colons;
  std::string patched;
  bool at_once = true;  // all that look alike; but some of them may be in quotes
  while (true) {
    try {
      Reader reader({patched.empty() ? part.text : patched, part.begin, part.lines_before}, name, limits, colons,
                    counts);
      auto document = reader.document();
      if (!at_once || reader.has_put_all_colons()) return document;
      at_once = false;
      colons.clear();
      patched.clear();
      counts = before;
    } catch (const ColonRefused& found) {
      counts = before;
      again += part.text.size();
      if (at_once && colons.empty()) {
        patched = part.text;
        colons = colons_of_addresses(part.text);
        for (const std::size_t colon : colons) patched[colon] = in_place_of_colon;
        if (colons.contains(found.byte)) continue;
      }
      if (!colons.insert(found.byte).second || again > most_again)
        return Document{
            .root = {},
            .begin = part.begin,
            .problem = not_yaml(part, name, found.byte, "found unexpected ':'", "write the value in quotes")};
      if (patched.empty()) patched = part.text;
      patched[found.byte] = in_place_of_colon;
    }
  }
}

}  // namespace

std::vector<Document> parse_yaml(std::string_view text, std::string_view name, const Limits& limits) {
  std::vector<Document> made;
  Counts counts;
  std::size_t again = 0, broken = 0;
  for (Part part; part.begin < text.size();) {
    part.text = text.substr(part.begin, end_of_document(text, part.begin) - part.begin);
    const Counts before = counts;
    if (auto document = read(part, name, limits, counts, again)) {
      document->number = made.size() + 1;
      const bool is_broken = document->problem.has_value();
      if (is_broken) counts = before;  // what was read of it is gone
      if (is_broken && ++broken > most_broken_documents)
        document->problem.emplace(ExitCode::usage,
                                  fmt::format("{}: more than {} documents with an error: the rest is not read",
                                              place(name, part.lines_before + 1), most_broken_documents));
      made.push_back(*std::move(document));
      if (broken > most_broken_documents) break;
    }
    part.lines_before += static_cast<std::size_t>(std::ranges::count(part.text, '\n'));
    part.begin += part.text.size();
  }
  return made;
}

}  // namespace sidetrack::manifest
