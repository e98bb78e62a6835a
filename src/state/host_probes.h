// SPDX-License-Identifier: GPL-2.0-or-later
// `host-probes`: what is asked of the node, made of what it holds and of what is to change.
#pragma once

#include <vector>

#include "kernel/survey.h"
#include "mesh/host_probes.h"
#include "state/apply.h"

namespace sidetrack {

// The addresses of pods that the node's sets and rules hold now, in order; in whichever backend.
[[nodiscard]] std::vector<Address> pods_in_ambient_mode(const Survey& survey);

// Those with `add` and without `remove`. The backend is the one that is named; else the one that holds the rules; else
// iptables-legacy if it is in use, iptables-nft, or nftables where the kernel has no ip_set. `asked.pods` is not used.
// With `force_apply` if another program's rule decides about probes before the jump of iptables, and would not once
// that is written anew.
[[nodiscard]] Asked host_probes(HostProbes asked, const std::vector<Address>& add, const std::vector<Address>& remove,
                                const ApplyOptions& options, const Survey& survey);

}  // namespace sidetrack
