// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "rule/live.h"

namespace sidetrack {

// One rule of a chain as it is to be: one that stands there now, or a new one.
struct Slot {
  std::optional<std::size_t> kept;  // its place among the rules that are there
  const Rule* fresh = nullptr;      // points into `wanted`
};

// How a chain becomes what is wanted: others' rules stay, in their order; so do ours that are equal at the beginning
// and at the end of both sequences, with their counters, unless these are to be rewritten. New rules go
//   - inserted ones (-I) to the front, after those of ours that stay before them;
//   - appended ones (-A) to where the ones that they replace stand; else beside those of ours that stay, else to
//     the end: a rule of another program that came before ours still does, one that came after as well.
// `wanted` is in the order of the kernel, -I resolved, as chains() gives it. Linear in the number of rules. Rules that
// are put back go to where they stood (Rule::after_others); the first ones that are there already stay. Of rules that
// are there `came_by_insert` tells which are inserted ones: the kernel does not keep it.
[[nodiscard]] std::vector<Slot> splice(std::span<const LiveRule> there, std::span<const Rule* const> wanted,
                                       bool (*came_by_insert)(const Rule& rule), EqualRules equal = EqualRules::keep);

// Whether these slots leave a chain of `count` rules as it is.
[[nodiscard]] bool changes_nothing(std::span<const Slot> slots, std::size_t count);

}  // namespace sidetrack
