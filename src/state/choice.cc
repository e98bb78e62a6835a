// SPDX-License-Identifier: GPL-2.0-or-later
#include "state/choice.h"

#include <algorithm>

namespace sidetrack {
namespace {

using enum BackendKind;

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

std::optional<BackendKind> named_backend(const ApplyOptions& options) {
  if (options.backend) return options.backend;
  if (options.native_nftables) return nftables;
  return options.force_iptables_binary;
}

Choice choose(const ApplyOptions& options, const Ruleset& asked, bool legacy_in_use) {
  if (const auto one = named_backend(options)) return {{*one}, {}};
  if (legacy_in_use) return {{iptables_legacy}, "legacy tables are in use here"};
  const std::size_t longest = longest_chain(asked);
  if (longest > long_chain) {
    return {{nftables, iptables_nft, iptables_legacy},
            "a list of " + std::to_string(longest) + " rules would slow every new connection, a set does not"};
  }
  return {{iptables_nft, nftables, iptables_legacy}, {}};
}

}  // namespace sidetrack
