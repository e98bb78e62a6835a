// SPDX-License-Identifier: GPL-2.0-or-later
// Rules for the frames that carry packets: of the families arp and bridge, and at the devices below another one. They
// are not followed; what matters is whether they let all frames pass.
#pragma once

#include <span>
#include <string>

#include "pod/pod_view.h"
#include "rule/hook.h"
#include "rule/live.h"

namespace sidetrack {

// "rule 1 of arp t c": what of the chain may not let a frame pass; empty: it lets all pass.
[[nodiscard]] std::string may_stop(const LiveChain& chain);

// Names what may stop ARP, which finds neighbours: a chain of that family or of the device; empty: nothing does.
[[nodiscard]] std::string rules_of_arp(std::span<const Live> live, const std::string& device);

// Whether the device is a bridge, or lies upon others: a macvlan, a VLAN, a bond.
[[nodiscard]] bool lies_upon(const Interface& interface);

// Of what comes in (ingress) or goes out (egress) by the device, below it: chains of family bridge if a bridge is
// there, and those at its ports or at what it lies upon. Empty: all pass.
[[nodiscard]] std::string rules_of_frames(const PodView& pod, std::span<const Live> live, Hook hook,
                                          const std::string& device);

}  // namespace sidetrack
