// SPDX-License-Identifier: GPL-2.0-or-later
// The values of an option that is a list, one by one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "options/flags.h"
#include "space/universe.h"

namespace sidetrack::lint {

// A value as it was given, and the packets that it speaks of.
struct ListValue {
  std::string text;
  std::optional<Family> family;  // of an address
  space::Interval values;
};

// Empty: "*", or of names.
[[nodiscard]] std::vector<ListValue> values_of(const Flag& flag, const Config& config);
// Of interfaces.
[[nodiscard]] std::vector<std::string> names_of(const Flag& flag, const Config& config);
// What a rule's matches say of that field, of those that are not negated.
[[nodiscard]] std::vector<ListValue> values_of(const Rule& rule, space::Field field);

// "22,443,8000-8100,9000,… (6 values)"
[[nodiscard]] std::string joined(const std::vector<ListValue>& values);

}  // namespace sidetrack::lint
