// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>

#include "inject/manifest/node.h"

namespace sidetrack::manifest {

// The type that a scalar without quotes has for kubectl and the API server: booleans and octal numbers of YAML 1.1,
// "0o17", "0b1" and "0x1F"; dates are strings, as are numbers of base 60 and those that no double holds ("1e505").
[[nodiscard]] Node::Type type_of_plain(std::string_view text);

// The key of a mapping that is written so without quotes: "on" is "true", "0x10" is "16".
[[nodiscard]] std::string key_of_plain(std::string_view text);

// A number as JSON has it: "0o17" is "15", "+1_000" is "1000". What JSON has no number for (".inf") is left as it is.
[[nodiscard]] std::string json_number(std::string_view text);

[[nodiscard]] bool is_true(std::string_view boolean);  // as it is written

}  // namespace sidetrack::manifest
