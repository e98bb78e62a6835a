// SPDX-License-Identifier: GPL-2.0-or-later
// Values that expressions load and the model has no match for, in nft's words.
#pragma once

#include <optional>

#include "kernel/nft/raw_expression.h"
#include "rule/nft/comparison.h"

namespace sidetrack::nft {

inline constexpr std::uint32_t presence = 1;  // the key of a value that says whether something is there

struct LoadedValue {
  Value value;  // of unknown origin or a tuple of ct, with its words: "numgen random mod 2", "ct original ip saddr"
  std::uint32_t destination;  // the register
  bool may_break_off;         // a packet that has no such value does not match the rule
};
// Nothing where nft's words are not known here. `family`: of the table, if it has one.
[[nodiscard]] std::optional<LoadedValue> loaded_value(const RawExpression& e, std::optional<Family> family = {});

// "fib daddr . iif"; nothing if the flags have more.
[[nodiscard]] std::optional<std::string> fib_words(std::uint32_t flags);

}  // namespace sidetrack::nft
