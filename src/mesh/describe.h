// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>

#include "model/live.h"
#include "model/ruleset.h"

namespace sidetrack {

// What a rule does. Its own reason if it has one (a plan's rules, nf_tables comments); iptables rules carry none and
// are recognised by their shape: those of Istio, of all versions, and of Sidetrack. Empty if the shape is not known.
[[nodiscard]] Reason describe(const Rule& rule);

// The rule in the words of `iptables -S`, without `-A CHAIN`; of long lists the first values and their number.
[[nodiscard]] std::string short_words(const Rule& rule);

// Whose a chain or one of its rules is: "Sidetrack", "Istio or Sidetrack" (they share names in iptables), "Istio" (its
// own nftables tables), "other".
[[nodiscard]] std::string_view whose(const Live& live, const LiveChain& chain);
[[nodiscard]] std::string_view whose(const Live& live, const LiveChain& chain, const LiveRule& rule);

}  // namespace sidetrack
