// SPDX-License-Identifier: GPL-2.0-or-later
// Answers questions about chains and rules that are marked as Sidetrack's or Istio's (LiveChain::ours, LiveRule::ours).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/error.h"
#include "rule/live.h"

namespace sidetrack {

// Whether the chain may go with what is ours: one of ours without a rule of another program.
[[nodiscard]] bool is_wholly_ours(const LiveChain& chain);
// Whether anything of it is ours to change. A chain of ours that holds only another program's rules is kept for them.
[[nodiscard]] bool concerns_us(const LiveChain& chain);

// Returns whether any of it may decide about packets, or is ours.
[[nodiscard]] bool holds_rules(const Live& live);
// Returns whether another program has rules, policies or dormant tables there that may decide about packets.
[[nodiscard]] bool holds_others(const Live& live);

// Names the chains of ours that stay when ours goes, each with a rule that another program has in it.
[[nodiscard]] std::vector<std::string> kept_chains(const Live& seen);

// The refusal that names what of another program leads to a chain of ours which would have to go: a rule, or an element
// of a map. Nothing if none does.
[[nodiscard]] std::optional<Error> leads_to_removed(const Live& seen, const Ruleset& wanted);

// The refusal that names a table with rules of ours that belongs to another process, which alone may change it.
[[nodiscard]] std::optional<Error> owned_by_another(const Live& seen);

// The refusal that names a chain, rule or set of another program in a table of our own of nftables; nothing if there is
// none.
[[nodiscard]] std::optional<Error> others_in_own_tables(const Live& seen);

}  // namespace sidetrack
