// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string_view>
#include <vector>

#include "rule/live.h"

namespace sidetrack {

// "ISTIO_OUTPUT": a chain of istio-iptables, of whatever version, or of ours; by their names, none that only begins so.
[[nodiscard]] bool is_istio_chain(std::string_view chain);

// CILIUM_PREROUTING, CILIUM_OUTPUT: those of Cilium's agent in an ambient pod, where Istio's has ISTIO_PRERT and
// ISTIO_OUTPUT, with rules of the same shapes.
[[nodiscard]] bool is_cilium_chain(std::string_view chain);

// Whether istio-iptables (of whatever version) or Sidetrack writes such a rule into this chain: it has exactly one of
// the shapes that are known (mesh/catalogue.cc). A comment or any other word more makes it another one.
[[nodiscard]] bool is_of_istio(const Rule& rule);

// Tells whether two rules of one chain ask the same and do the same.
[[nodiscard]] bool is_same(const LiveRule& a, const LiveRule& b);

// Sets `ours` on the chains and rules of iptables (either backend) that Sidetrack or istio-iptables wrote:
//
//   - chains of their names in raw, mangle and nat, and the rules in them of exactly one of their shapes; any other
//     rule there is another program's;
//   - rules of built-in chains that lead to such a chain, in the same way;
//   - in a family that has such a chain in any table, the rules that stand in the built-in chains themselves:
//     excluded interfaces, in nat and mangle:
//       -A PREROUTING -i INTERFACE -j RETURN     with its twin     -A OUTPUT -o INTERFACE -j RETURN
//     virtual interfaces, in nat:
//       -I PREROUTING 1 -i INTERFACE -j RETURN
//     TPROXY, in mangle:
//       -A PREROUTING -p tcp -m mark --mark MARK -j CONNMARK --save-mark
//       -A OUTPUT -p tcp -o lo -m mark --mark MARK -j RETURN
//       -A OUTPUT ! -d LOOPBACK -p tcp -o lo -m owner --uid-owner UID -j MARK --set-mark 1338
//       -A OUTPUT -p tcp -m connmark --mark MARK -j CONNMARK --restore-mark
//     packets of no connection, in mangle (Istio 1.10 to 1.23, where the other rules may be of one of these):
//       -A PREROUTING -m conntrack --ctstate INVALID -j DROP
//     DNS, in nat and raw (Istio before 1.25), where all kinds of its rules are:
//       -A OUTPUT -p udp --dport 53 -m owner --uid-owner UID -j RETURN
//       -A OUTPUT -d SERVER -p udp --dport 53 -j REDIRECT --to-ports 15053
//       and the rules with -j CT --zone
//     of Istio 1.7 and 1.8 -j DNAT --to-destination 127.0.0.1:PORT, and in POSTROUTING -j SNAT --to-source 127.0.0.1
//     Of those of an owner, only those of owners whose traffic ISTIO_OUTPUT returns: its proxy's ids.
//     Of identical ones one alone, unless a jump to a chain of Istio's stands twice, too: its program ran again;
//   - before a rule of ours, one of the same matches with -j NFLOG --nflog-group 1337 (trace logging, before 1.25);
//   - with a sidecar's chains in either family, in filter of IPv6 (Istio before 1.5, as a whole alone):
//       -A INPUT -m state --state ESTABLISHED -j ACCEPT
//       -A INPUT -d ::1 -i lo -j ACCEPT          from 1.4 on
//       -A INPUT -j REJECT
//
// Nothing in the kernel says who wrote a rule: another program's rule of exactly one of these shapes, beside ISTIO_
// chains, is taken for ours. The same rule with a comment, or any other word more, is not.
//
// The rules of ambient pods, Cilium's among them, are marked as well: who made them the rules do not tell. See
// leave_to_agents().
void mark_ours(std::vector<LiveChain>& chains);

// The tables of Istio's agent for ambient pods, "inet istio-ambient-nat" and the like.
[[nodiscard]] bool is_ambient_table(std::string_view table);

// Takes the rules of ambient pods that an agent of the node made from what is ours: `of_agent` instead of `ours`. Those
// of Istio's shape in iptables are an agent's unless `made_by_us`, which the policy route tells: ours is tagged.
// Returns whether there are any.
bool leave_to_agents(Live& live, bool made_by_us);

}  // namespace sidetrack
