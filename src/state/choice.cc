// SPDX-License-Identifier: GPL-2.0-or-later
#include "state/choice.h"

#include <algorithm>

namespace sidetrack {
namespace {

using enum BackendKind;

// What was asked for by name, if anything was.
std::vector<BackendKind> forced(const ApplyOptions& options) {
  switch (options.backend) {
    case BackendChoice::nftables:
      return {nftables};
    case BackendChoice::iptables_nft:
      return {iptables_nft};
    case BackendChoice::iptables_legacy:
      return {iptables_legacy};
    case BackendChoice::automatic:
      break;
  }
  if (options.native_nftables) return {nftables};
  switch (options.force_iptables_binary) {
    case ApplyOptions::ForcedBinary::legacy:
      return {iptables_legacy};
    case ApplyOptions::ForcedBinary::nft:
      return {iptables_nft};
    case ApplyOptions::ForcedBinary::no:
      break;
  }
  return {};
}

std::size_t longest_chain(const Ruleset& asked) {
  std::size_t longest = 0;
  for (Family family : {Family::ipv4, Family::ipv6}) {
    for (Table table : all_tables) {
      for (const Chain& chain : chains(asked, table, family)) longest = std::max(longest, chain.rules.size());
    }
  }
  return longest;
}

}  // namespace

Choice choose(const ApplyOptions& options, const Ruleset& asked, bool legacy_in_use) {
  if (auto one = forced(options); !one.empty()) return {std::move(one), {}};
  if (legacy_in_use) return {{iptables_legacy}, "legacy tables are in use here"};
  const std::size_t longest = longest_chain(asked);
  if (longest > long_chain) {
    return {{nftables, iptables_nft, iptables_legacy},
            "a list of " + std::to_string(longest) + " rules would slow every new connection, a set does not"};
  }
  return {{iptables_nft, nftables, iptables_legacy}, {}};
}

}  // namespace sidetrack
