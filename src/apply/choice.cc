// SPDX-License-Identifier: GPL-2.0-or-later
#include "apply/choice.h"

#include <fmt/format.h>

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

// Where nothing of the sidecar is there yet.
Choice for_new_rules(std::size_t longest, bool legacy_in_use) {
  if (legacy_in_use) return {{iptables_legacy}, "legacy tables are in use here"};
  if (longest > long_chain) {
    return {{nftables, iptables_nft, iptables_legacy},
            fmt::format("a list of {} rules would slow every new connection, a set does not", longest)};
  }
  return {{iptables_nft, nftables, iptables_legacy}, {}};
}

}  // namespace

std::optional<BackendKind> named_backend(const ApplyOptions& options) {
  if (options.backend) return options.backend;
  if (options.native_nftables) return nftables;
  return options.force_iptables_binary;
}

Choice choose(const ApplyOptions& options, const Ruleset& asked, bool legacy_in_use,
              const std::vector<BackendKind>& holders) {
  if (const auto one = named_backend(options)) return {{*one}, {}};
  const std::size_t longest = longest_chain(asked);
  Choice choice = for_new_rules(longest, legacy_in_use);
  if (holders.size() != 1 || choice.order.front() == holders.front()) return choice;
  const BackendKind holder = holders.front();
  if (holder == iptables_nft && longest > long_chain) return for_new_rules(longest, false);
  std::erase(choice.order, holder);
  choice.order.insert(choice.order.begin(), holder);
  choice.because = fmt::format("{} holds rules of the sidecar already", name(holder));
  return choice;
}

}  // namespace sidetrack
