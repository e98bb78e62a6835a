// SPDX-License-Identifier: GPL-2.0-or-later
#include "cni/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "model/error.h"

namespace sidetrack::cni {
namespace {

// nlohmann's parser has accepted the text, but does not tell where a value stands.
class Scanner {
 public:
  Scanner(std::string_view text, std::size_t at) : text_(text), at_(at) {}

  // Of the object or array that begins here: each value with its key, which is empty in an array.
  void each(const std::function<void(std::string_view key, TextRange value)>& use) {
    skip_blanks();
    const char end = text_[at_++] == '{' ? '}' : ']';
    for (skip_blanks(); text_[at_] != end; skip_blanks()) {
      std::string_view key;
      if (end == '}') {
        key = value().of(text_);
        skip_blanks();
        ++at_;  // ':'
      }
      use(key, value());
      skip_blanks();
      if (text_[at_] == ',') ++at_;
    }
  }

 private:
  void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  TextRange value() {
    skip_blanks();
    TextRange range{at_, at_};
    std::size_t depth = 0;
    do {
      const char c = text_[at_];
      if (c == '"') {
        skip_string();
      } else if (c == '{' || c == '[') {
        ++depth;
        ++at_;
      } else if (c == '}' || c == ']') {
        --depth;
        ++at_;
      } else if (depth > 0) {
        ++at_;
      } else {  // a number, true, false or null
        at_ = std::min(text_.find_first_of(" \t\r\n,]}", at_), text_.size());
      }
    } while (depth > 0);
    range.end = at_;
    return range;
  }

  void skip_string() {
    for (++at_; text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    ++at_;
  }

  std::string_view text_;
  std::size_t at_;
};

std::string line_and_column(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte - 1);  // the parser counts from 1
  const auto line = std::ranges::count(before, '\n') + 1;
  const std::size_t last = before.rfind('\n');
  return fmt::format("line {}, column {}", line, before.size() - (last == std::string_view::npos ? 0 : last + 1) + 1);
}

// Documents are copied and written value within value: one that nests without end would end the program.
void require_depth(std::string_view text) {
  constexpr std::size_t deepest = 1000;
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '{' || c == '[')) {
      if (++depth > deepest)
        throw Error(ExitCode::failed, fmt::format("lists and objects nested deeper than {} in {}", deepest,
                                                  line_and_column(text, i + 1)));
    } else if (!in_string && (c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
}

}  // namespace

Parsed parse_object(std::string_view text) {
  require_depth(text);
  if (const auto zero = text.find('\0'); zero != std::string_view::npos)  // to the parser the text ends there
    throw Error(ExitCode::failed, fmt::format("invalid JSON in {}", line_and_column(text, zero + 1)));
  try {
    auto document = Parsed::parse(text);
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

void each_value(std::string_view text, std::size_t at,
                const std::function<void(std::string_view key, TextRange value)>& use) {
  Scanner(text, at).each(use);
}

std::optional<std::string> repeated_key(std::string_view text, std::string_view but) {
  using Event = nlohmann::json::parse_event_t;
  std::optional<std::string> repeated;
  std::vector<std::set<std::string>> open;
  bool left_out = false;
  const auto hear = [&](int depth, Event event, nlohmann::json& parsed) {
    if (event == Event::key && depth == 1) left_out = parsed == but;
    if (event == Event::object_start) open.emplace_back();
    if (event == Event::object_end) open.pop_back();
    if (event != Event::key || left_out || repeated) return true;
    const auto [key, is_new] = open.back().insert(parsed.get<std::string>());
    if (!is_new) repeated = *key;
    return true;
  };
  [[maybe_unused]] const auto document = nlohmann::json::parse(text, hear);
  return repeated;
}

std::vector<TextRange> values_of(std::string_view text, std::string_view key) {
  std::vector<TextRange> found;
  each_value(text, 0, [&](std::string_view name, TextRange value) {
    if (nlohmann::json::parse(name).get<std::string>() == key) found.push_back(value);
  });
  return found;
}

}  // namespace sidetrack::cni
