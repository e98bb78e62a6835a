// SPDX-License-Identifier: GPL-2.0-or-later
// Where the kernel calls a base chain.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rule/ruleset.h"

namespace sidetrack {

// The hooks that a pod's packets pass. The first five are in the order of the kernel's numbers (NF_INET_PRE_ROUTING …);
// ingress and egress are those of a device (inet and netdev tables of nf_tables).
enum class Hook : std::uint8_t { prerouting, input, forward, output, postrouting, ingress, egress };
inline constexpr Hook all_hooks[] = {Hook::prerouting, Hook::input, Hook::forward, Hook::output, Hook::postrouting};

[[nodiscard]] std::string_view name(Hook hook);  // "PREROUTING", as iptables writes it

// What a base chain may do: nat chains are asked for the first packet of a connection alone; a chain of type route
// looks up the route again if a rule changed the mark, an address or the type of service.
enum class ChainType : std::uint8_t { filter, nat, route };
inline constexpr ChainType all_chain_types[] = {ChainType::filter, ChainType::nat, ChainType::route};
[[nodiscard]] constexpr std::string_view name(ChainType type) {  // as nft names it
  constexpr std::string_view names[] = {"filter", "nat", "route"};
  return names[static_cast<std::size_t>(type)];
}

// type nat hook output priority -100
struct HookPoint {
  Hook hook = Hook::prerouting;
  std::int32_t priority = 0;  // the kernel calls chains of lower numbers first
  ChainType type = ChainType::filter;
  std::string device;  // of ingress and egress: the only one; empty: all
  friend bool operator==(const HookPoint&, const HookPoint&) = default;
};

// The hook of that name, "PREROUTING"; nothing for other words.
[[nodiscard]] std::optional<Hook> hook_named(std::string_view name);

// Where iptables' own chain of that name is called; nothing if the table has no built-in chain of that name.
[[nodiscard]] std::optional<HookPoint> builtin_hook(Table table, std::string_view chain);
// Returns the names of those chains, in the order of the hooks.
[[nodiscard]] std::vector<std::string> builtin_chains(Table table);

}  // namespace sidetrack
