// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mesh/catalogue.h"
#include "rule/live.h"
#include "rule/ruleset.h"

namespace sidetrack {

// What a rule does. Its own reason if it has one (a plan's rules, nf_tables comments); iptables rules carry none and
// are recognised by their shape: those of Istio, of all versions, and of Sidetrack. Empty if the shape is not known.
[[nodiscard]] Reason describe(const Rule& rule);

// Returns the same of a rule that is there. If another program made it, no option of ours asked for it.
[[nodiscard]] Reason describe_live(const LiveRule& live);

// The name of a port of the proxy's, of a sidecar or of ztunnel as the rule is that leads there or speaks of it. Empty
// if the port is none of them.
[[nodiscard]] std::string_view port_name(std::uint16_t port, const Rule& rule);

// The rule in the words of `iptables -S`, without `-A CHAIN`; of long lists the first values and their number. Its
// matches alone, one by one. What is not understood is in_short().
[[nodiscard]] std::string short_words(const Rule& rule);
[[nodiscard]] std::vector<std::string> short_matches(const Rule& rule);

// The words of a match or target that is not understood are all of its bytes, thousands perhaps: the first hundred
// characters, and how many more there are. For people alone: others may have the same.
[[nodiscard]] std::string in_short(std::string text);

// What a chain of Istio's nftables tables, "istio-output-dns" or "output", is called in iptables: "ISTIO_OUTPUT_DNS".
// The only one of another name is "istio-prerouting": ISTIO_PRERT.
[[nodiscard]] std::string in_iptables_names(std::string chain);

// Which program makes such a chain or rule.
enum class Maker : std::uint8_t {
  other,
  istio_or_sidetrack,  // they share names in iptables
  istio,               // in its own nftables tables, or as the agent of an ambient pod
  sidetrack,
  cilium,  // as the agent of an ambient pod
};
inline constexpr Maker all_makers[] = {Maker::other, Maker::istio_or_sidetrack, Maker::istio, Maker::sidetrack,
                                       Maker::cilium};
[[nodiscard]] constexpr std::string_view name(Maker maker) {  // as `show` says it
  constexpr std::string_view names[] = {"other", "Istio or Sidetrack", "Istio", "Sidetrack", "Cilium"};
  return names[static_cast<std::size_t>(maker)];
}
[[nodiscard]] Maker maker_of(const Live& live, const LiveChain& chain);
[[nodiscard]] Maker maker_of(const Live& live, const LiveChain& chain, const LiveRule& rule);

}  // namespace sidetrack
