// SPDX-License-Identifier: GPL-2.0-or-later
// Which backend is to be used. No probe: a commit is atomic, so trying it is the probe; what one backend's kernel side
// refuses, the next one is asked.
#pragma once

#include <string>
#include <vector>

#include "model/config.h"
#include "pod/routing.h"
#include "rule/live.h"

namespace sidetrack {

// The backends to be tried, in this order, until the kernel takes the rules.
struct Choice {
  std::vector<BackendKind> order;
  std::string because;  // for the log, if the order is not the usual one; else empty
};

// The one that was asked for by name, if any was.
[[nodiscard]] std::optional<BackendKind> named_backend(const ApplyOptions& options);

// --native-nftables and --backend decide alone, then --force-iptables-binary; else:
//   the one that holds rules of the sidecar, if only one does (`holders`); then
//   iptables-legacy if it is in use here; iptables-nft; nftables; iptables-legacy.
// nftables comes before iptables-nft when lists are so long that linear rules would slow every new connection, also
// where iptables-nft holds the rules: both change together.
[[nodiscard]] Choice choose(const ApplyOptions& options, const Ruleset& asked, bool legacy_in_use,
                            const std::vector<BackendKind>& holders = {});

// From how many rules in one chain on a set is worth it: each costs a new connection about 30 ns (measured on kernel
// 6.18), and a connection over loopback about 30 µs.
inline constexpr std::size_t long_chain = 256;

}  // namespace sidetrack
