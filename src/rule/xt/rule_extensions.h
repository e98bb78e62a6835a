// SPDX-License-Identifier: GPL-2.0-or-later
// A rule's matches and target as extensions of xtables, both ways.
#pragma once

#include <string_view>
#include <vector>

#include "rule/rule.h"
#include "rule/xt/extension.h"

namespace sidetrack::xt {

// The extensions of a rule, in the order of its matches. Interface, address and protocol are none: they stand in
// the header of the rule. Throws std::logic_error for what xtables cannot hold: the plan must not ask for it.
[[nodiscard]] std::vector<Extension> matches_of(const Rule& rule);

// REDIRECT, SNAT to one address, TPROXY, MARK, CONNMARK, CT. Throws std::logic_error for a verdict and a
// jump, which are no extensions, and for an unknown target.
[[nodiscard]] Extension target_of(const Target& target, Family family);

// Back to the model. One extension may hold several matches (`--sport 53 --dport 53`, source first), or none (`-m tcp`
// alone). What is understood is understood to its last bit; else it becomes an UnknownMatch or UnknownTarget, in the
// words of `iptables -S` as far as they are known, else as unknown_words() has it.
[[nodiscard]] std::vector<Match> decode_match(const ExtensionView& extension, Family family);
[[nodiscard]] Target decode_target(const ExtensionView& extension, Family family);

[[nodiscard]] Source source_of(ExtensionKind kind, std::string_view name);  // empty if this program never sends it

}  // namespace sidetrack::xt
