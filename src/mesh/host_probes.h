// SPDX-License-Identifier: GPL-2.0-or-later
// What the node of ambient pods needs: the kubelet's probes come from an address that pods let pass.
#pragma once

#include <vector>

#include "mesh/plan.h"
#include "model/backend_kind.h"

namespace sidetrack {

struct HostProbes {
  Address probe_address;
  Address probe_address6;
  Families families = Families::both();
  std::vector<Address> pods;  // those that are asked in ambient mode
};

// The rules, and for iptables the sets of ip_set that they ask:
//   -t nat -I POSTROUTING 1 -j ISTIO_POSTRT
//   -t nat -A ISTIO_POSTRT -p tcp -m owner --socket-exists -m set --match-set istio-inpod-probes-v4 dst
//          -j SNAT --to-source 169.254.7.127
// In nftables the addresses are the rule's own set; without any there is no rule of that family. A pure function.
// Addresses of families that are not asked for are left out.
[[nodiscard]] Plan host_probes_plan(const HostProbes& asked, BackendKind backend);

// The addresses of pods in such a plan, in order.
[[nodiscard]] std::vector<Address> pods_of(const Plan& plan);

}  // namespace sidetrack
