// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "model/error.h"

namespace sidetrack::cni {
namespace {

// An iterator over a text that tells how far the parser, which does not say it, has read.
struct Reading {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at;
  const char** read;

  reference operator*() const { return *at; }
  Reading& operator++() {
    *read = ++at;
    return *this;
  }
  friend bool operator==(const Reading& a, const Reading& b) { return a.at == b.at; }
};

std::string line_and_column(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte - 1);  // the parser counts from 1
  const auto line = std::ranges::count(before, '\n') + 1;
  const std::size_t last = before.rfind('\n');
  return fmt::format("line {}, column {}", line, before.size() - (last == std::string_view::npos ? 0 : last + 1) + 1);
}

using Event = Parsed::parse_event_t;

// `hear`: called with each event, and how deep it is.
Parsed parsed(std::string_view text, const char*& read, const Parsed::parser_callback_t& hear) {
  read = text.data();
  return Parsed::parse(Reading{read, &read}, Reading{read + text.size(), &read}, hear);
}

}  // namespace

Parsed parse_object(std::string_view text) {
  constexpr int deepest = 1000;
  const char* read = nullptr;
  // Documents are copied and written value within value: one that nests without end would end the program.
  const auto refuse_deep = [&](int depth, Event event, Parsed&) {
    if (depth >= deepest && (event == Event::object_start || event == Event::array_start))
      throw Error(ExitCode::failed, fmt::format("lists and objects nested deeper than {} in {}", deepest,
                                                line_and_column(text, static_cast<std::size_t>(read - text.data()))));
    return true;
  };
  if (const auto zero = text.find('\0'); zero != std::string_view::npos)  // to the parser the text ends there
    throw Error(ExitCode::failed, fmt::format("invalid JSON in {}", line_and_column(text, zero + 1)));
  try {
    auto document = parsed(text, read, refuse_deep);
    // A byte order mark, which the parser skips, is none of JSON to the runtimes.
    if (!document.is_object() || text.starts_with("\xEF\xBB\xBF"))
      throw Error(ExitCode::failed, "expected a JSON object");
    return document;
  } catch (const nlohmann::json::parse_error& error) {
    throw Error(ExitCode::failed, fmt::format("invalid JSON in {}", line_and_column(text, error.byte)));
  } catch (const nlohmann::json::exception&) {
    throw Error(ExitCode::failed, "expected JSON with numbers that fit into 64 bits");
  }
}

std::optional<std::string> repeated_key(std::string_view text, std::string_view but) {
  std::optional<std::string> repeated;
  std::vector<std::set<std::string>> open;
  bool left_out = false;
  const auto hear = [&](int depth, Event event, Parsed& key_or_value) {
    if (event == Event::key && depth == 1) left_out = key_or_value == but;
    if (event == Event::object_start) open.emplace_back();
    if (event == Event::object_end) open.pop_back();
    if (event != Event::key || left_out || repeated) return true;
    const auto [key, is_new] = open.back().insert(key_or_value.get<std::string>());
    if (!is_new) repeated = *key;
    return true;
  };
  [[maybe_unused]] const auto document = Parsed::parse(text, hear);
  return repeated;
}

std::vector<std::string_view> objects_of(std::string_view text, std::string_view key) {
  std::vector<std::string_view> found;
  const char* read = nullptr;
  const char* begin = nullptr;
  bool is_wanted = false;
  const auto hear = [&](int depth, Event event, Parsed& key_or_value) {
    if (depth != 1) return true;
    if (event == Event::key) is_wanted = key_or_value == key;
    if (event == Event::key && is_wanted) found.emplace_back();
    if (event == Event::object_start) begin = read - 1;
    if (event == Event::object_end && is_wanted) found.back() = {begin, static_cast<std::size_t>(read - begin)};
    return true;
  };
  [[maybe_unused]] const auto document = parsed(text, read, hear);
  return found;
}

}  // namespace sidetrack::cni
