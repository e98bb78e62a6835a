// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string_view>
#include <vector>

#include "sidetrack/backend.h"

namespace sidetrack {

// "ISTIO_OUTPUT": a chain of istio-iptables, of whatever version, or of ours.
[[nodiscard]] bool is_istio_chain(std::string_view chain);

// Sets `ours` on the chains and rules of iptables (either backend) that Sidetrack or istio-iptables wrote:
//
//   - chains named ISTIO_*, and every rule in them;
//   - rules anywhere that jump or go to such a chain: without it they mean nothing, and while they stand it cannot go;
//   - in a family that has such a chain in any table, the rules that stand in the built-in chains themselves:
//       excluded interfaces   nat, mangle   -A PREROUTING -i IF -j RETURN  with its twin  -A OUTPUT -o IF -j RETURN
//       virtual interfaces    nat           -I PREROUTING 1 -i IF -j RETURN
//       TPROXY                mangle        -A PREROUTING -p tcp -m mark --mark M -j CONNMARK --save-mark
//                                           -A OUTPUT -p tcp -o lo -m mark --mark M -j RETURN
//                                           -A OUTPUT ! -d LO -p tcp -o lo -m owner --uid-owner U -j MARK --set-mark
//                                           1338 -A OUTPUT -p tcp -m connmark --mark M -j CONNMARK --restore-mark
//
// Nothing in the kernel says who wrote a rule: somebody else's rule of exactly one of these shapes, beside ISTIO_
// chains, is taken for ours. The same rule with a comment, or any other word more, is not.
void mark_ours(std::vector<LiveChain>& chains);

}  // namespace sidetrack
