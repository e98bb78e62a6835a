// SPDX-License-Identifier: GPL-2.0-or-later
// A whole rule as iptables-legacy stores it: ipt_entry (or ip6t_entry) with interfaces, addresses and protocol, then
// the matches, then the target.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rule/ruleset.h"

namespace sidetrack::xt {

// The rule, its counters at zero. Verdicts and jumps are a standard target that has the label in its name ("RETURN",
// "ISTIO_OUTPUT"), as libiptc takes it. Throws std::logic_error for what xtables cannot hold.
[[nodiscard]] std::vector<std::byte> encode_entry(const Rule& rule, Family family);

// Back to the model: matches and target; the caller knows the rest. `label` is the verdict or chain of a standard
// target, empty for a rule without a target; of an extension it is not looked at. Throws failed for bytes whose
// parts do not fit into them, as copy_entry does.
struct DecodedEntry {
  std::vector<Match> matches;
  Target target;
};
[[nodiscard]] DecodedEntry decode_entry(std::span<const std::byte> entry, std::string_view label, Family family);

// A copy of a rule from the kernel, counters included, that libiptc takes again: with the label in its place.
[[nodiscard]] std::vector<std::byte> copy_entry(std::span<const std::byte> entry, std::string_view label,
                                                Family family);

}  // namespace sidetrack::xt
