// SPDX-License-Identifier: GPL-2.0-or-later
// From a comparison of what a register holds to matches of the model.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernel/nft/registers.h"
#include "model/ruleset.h"
#include "system/cgroup.h"

namespace sidetrack::nft {

// Values from first to last, as the kernel compares them: byte by byte.
using Bounds = std::pair<std::string, std::string>;

// Ways in which a condition can hold, each a list of matches that must all hold; no packet is in two of them. None: it
// never holds. One without matches: it always holds.
using Alternatives = std::vector<std::vector<Match>>;

struct DecodeContext {
  Families families;   // of the packets that come here: a network header is of a known family or none
  bool native = true;  // false among the rules of iptables, where a packet without a socket has another meaning
  const CgroupPaths* cgroups = nullptr;  // nullptr: none has a path
};

// When the value lies within one of the bounds (or, negated, in none); nothing if the model cannot say it.
[[nodiscard]] std::optional<Alternatives> condition(const Value& value, std::span<const Bounds> bounds, bool negated,
                                                    const DecodeContext& context);

// The family that a comparison of `meta nfproto` or `meta protocol` leaves; nothing if it is another comparison.
[[nodiscard]] std::optional<Families> family_condition(const Value& value, std::span<const Bounds> bounds,
                                                       bool negated);

// "meta mark", "@nh,72,8 & ff": of what is compared, in words.
[[nodiscard]] std::string words(const Value& value);

// How many bytes the kernel loads for a key of meta or ct; 0 if that is not known.
[[nodiscard]] std::uint32_t meta_size(std::uint32_t key);
[[nodiscard]] std::uint32_t ct_size(std::uint32_t key);

}  // namespace sidetrack::nft
