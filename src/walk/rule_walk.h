// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <string>

#include "pod/pod_view.h"
#include "rule/live.h"
#include "walk/chain_index.h"
#include "walk/forks.h"
#include "walk/in_flight.h"

namespace sidetrack {

// A base chain and where it was read.
struct BaseChain {
  const Live* live = nullptr;
  const LiveChain* chain = nullptr;
  [[nodiscard]] std::string name() const;  // "nat OUTPUT", "inet filter output"
};

enum class ChainResult : std::uint8_t {
  on,          // to the next base chain
  translated,  // by this chain: no further one of type nat is asked
  gone,        // dropped, or it is unknown what became of it
};

// Whether the match holds for the packet, and its observer hears of it.
[[nodiscard]] bool holds_observed(const Match& match, const PacketAtHook& packet);
// Tells whether the packet is of that protocol, and its observer hears of it.
[[nodiscard]] bool is_of(Protocol protocol, const PacketAtHook& packet);
// Whether the match holds. Rules of other programs in iptables' tables of nf_tables may be native or xt's, which differ
// about packets without an owner.
[[nodiscard]] Truth truth_of(const LiveRule& entry, const Match& match, const PacketAtHook& packet, const Live& live);
// Whether a rule that asks this may treat later packets otherwise, of a connection whose mark stays as it is.
[[nodiscard]] bool tells_later_packets(std::span<const Match> matches, const PacketAtHook& packet);

// Walks the packet through a base chain at its hook, noting every rule that it meets, up to the policy. `chains` are
// those that packets of its family pass.
[[nodiscard]] ChainResult walk_chain(WalkState& packet, const PodView& pod, const BaseChain& base, ChainIndex& chains,
                                     Forks& forks);

}  // namespace sidetrack
