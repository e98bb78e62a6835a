// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/hook.h"

#include <algorithm>

namespace sidetrack {
namespace {

// linux/netfilter_ipv4.h: NF_IP_PRI_RAW, _MANGLE, _NAT_DST, _FILTER, _SECURITY, _NAT_SRC.
std::int32_t priority_of(Table table, Hook hook) {
  constexpr std::int32_t priorities[] = {-300, -150, -100, 0, 50, 0};  // by Table
  const bool of_sources = table == Table::nat && (hook == Hook::input || hook == Hook::postrouting);
  return of_sources ? 100 : priorities[static_cast<std::size_t>(table)];
}

bool has_chain(Table table, Hook hook) {
  switch (table) {
    case Table::raw:
      return hook == Hook::prerouting || hook == Hook::output;
    case Table::mangle:
      return true;
    case Table::nat:
      return hook != Hook::forward;
    case Table::filter:
    case Table::security:
      return hook == Hook::input || hook == Hook::forward || hook == Hook::output;
    case Table::other:
      return false;
  }
  return false;
}

ChainType type_of(Table table, Hook hook) {
  if (table == Table::nat) return ChainType::nat;
  return table == Table::mangle && hook == Hook::output ? ChainType::route : ChainType::filter;
}

}  // namespace

std::string_view name(Hook hook) {
  constexpr std::string_view names[] = {"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING", "INGRESS", "EGRESS"};
  return names[static_cast<std::size_t>(hook)];
}

std::optional<Hook> hook_named(std::string_view name_of) {
  const auto* found = std::ranges::find(all_hooks, name_of, [](Hook hook) { return name(hook); });
  if (found == std::end(all_hooks)) return std::nullopt;
  return *found;
}

std::optional<HookPoint> builtin_hook(Table table, std::string_view chain) {
  const auto hook = hook_named(chain);
  if (!hook || !has_chain(table, *hook)) return std::nullopt;
  return HookPoint{*hook, priority_of(table, *hook), type_of(table, *hook), {}};
}

std::vector<std::string> builtin_chains(Table table) {
  std::vector<std::string> names;
  for (const Hook hook : all_hooks) {
    if (has_chain(table, hook)) names.emplace_back(name(hook));
  }
  return names;
}

}  // namespace sidetrack
