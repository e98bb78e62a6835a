// SPDX-License-Identifier: GPL-2.0-or-later
// Rules in the words of iptables.
#pragma once

#include <string>

#include "rule/ruleset.h"

namespace sidetrack {

// One rule in the words of iptables: "-A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN". `family` decides nothing but the
// words that differ (icmp, icmpv6).
[[nodiscard]] std::string iptables_words(const Rule& rule);
[[nodiscard]] std::string iptables_words(const Match& match);
[[nodiscard]] std::string iptables_words(const Target& target);

// The matches in the order in which iptables lists them: -s -d -i -o -p, then the extensions as they were given. The
// kernel does not keep another order of the first five, so that what is read back and what is asked look alike.
[[nodiscard]] Rule in_iptables_order(Rule rule);
[[nodiscard]] Ruleset in_iptables_order(Ruleset ruleset);

// What `iptables-restore --noflush` (ip6tables-restore for IPv6) takes, word for word as istio-iptables prints it,
// but for white space in the table header. Empty if there is no rule for the family.
[[nodiscard]] std::string iptables_restore(const Ruleset& ruleset, Family family);

}  // namespace sidetrack
