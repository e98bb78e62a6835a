// SPDX-License-Identifier: GPL-2.0-or-later
// A text that is JSON, and where its values stand in it: what is handed on or kept must stay as it was written, to the
// last digit of a number, which no parsed document can give back.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sidetrack::cni {

struct TextRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
};

// A document with its keys sorted: nlohmann's ordered_json, which keeps their order, compares each with all before it.
using Parsed = nlohmann::json;

// The text as a document. Throws Error (failed) that tells what was expected and the line and column where it is not
// so: "invalid JSON in line 3, column 7", "expected a JSON object".
[[nodiscard]] Parsed parse_object(std::string_view text);

// Of the object or array that begins at `at` of a text that parse_object() has taken: each value, with its key as it is
// written, which is empty in an array.
void each_value(std::string_view text, std::size_t at,
                const std::function<void(std::string_view key, TextRange value)>& use);

// The values of the text's own key: one, none, or several if the key is there more than once, of which parsers take the
// last.
[[nodiscard]] std::vector<TextRange> values_of(std::string_view text, std::string_view key);

// A key that an object of such a text has more than once, at any depth; `but` the text's own key of that name, and what
// its value holds.
[[nodiscard]] std::optional<std::string> repeated_key(std::string_view text, std::string_view but);

}  // namespace sidetrack::cni
