// SPDX-License-Identifier: GPL-2.0-or-later
// What the drawings of rules and of the map share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/ruleset.h"

namespace sidetrack {

// What stands in a picture of no rules.
inline constexpr std::string_view nothing_captured = "nothing is captured";

// What becomes of a packet, or of its way.
enum class Fate : std::uint8_t { onward, proxy, call, change, drop };
[[nodiscard]] std::string_view stroke(Fate fate);  // colours
[[nodiscard]] std::string_view fill(Fate fate);

[[nodiscard]] std::string escaped(std::string_view text);  // for SVG

// Lines of at most `width` characters, where words are no longer; broken at blanks.
[[nodiscard]] std::vector<std::string> wrapped(const std::string& sentence, std::size_t width);

// The rules of these families, folded as the backend nftables programs them.
[[nodiscard]] Ruleset of_families(const Ruleset& ruleset, Families families);

// The matches of a rule, each in iptables' words: "-p tcp", "! -d 10.0.0.0/8"; of a rule without any "everything", or
// after others "everything else".
using Condition = std::vector<std::string>;
[[nodiscard]] Condition condition(const Rule& rule, bool first);
// As lines of at most `width` characters, where a match is no longer.
[[nodiscard]] std::vector<std::string> broken(const Condition& condition, std::size_t width);

// What a rule does that decides nothing, in iptables' words: "MARK --set-mark 1337"
[[nodiscard]] std::string action_label(const Target& target);

// "port 15001: Envoy outbound", of the rule that leads there
[[nodiscard]] std::string listener_label(std::uint16_t port, const Rule& rule);

}  // namespace sidetrack
