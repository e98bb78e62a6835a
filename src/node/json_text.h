// SPDX-License-Identifier: GPL-2.0-or-later
// A text that is JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sidetrack::cni {

// A document with its keys sorted, and one that keeps their order, but compares each key with all before it: not for
// what a pod's owner writes.
using Parsed = nlohmann::json;
using Ordered = nlohmann::ordered_json;

// The text as a document. Throws Error (failed) that tells what was expected and the line and column where it is not
// so: "invalid JSON in line 3, column 7", "expected a JSON object".
[[nodiscard]] Parsed parse_object(std::string_view text);

// The values of the key of a text that parse_object() has taken, as they are written: one, none, or several if the key
// is there more than once, of which parsers take the last. Empty for what is no object.
[[nodiscard]] std::vector<std::string_view> objects_of(std::string_view text, std::string_view key);

// A key that an object of such a text has more than once, at any depth; `but` the text's own key of that name, and what
// its value holds.
[[nodiscard]] std::optional<std::string> repeated_key(std::string_view text, std::string_view but);

}  // namespace sidetrack::cni
