// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/iptables.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/printable.h"
#include "model/stable_sort.h"

namespace sidetrack {
namespace {

int place(const Match& match) {
  if (const auto* address = std::get_if<AddressMatch>(&match)) return address->end == End::source ? 0 : 1;
  if (const auto* interface = std::get_if<InterfaceMatch>(&match))
    return interface->direction == InterfaceDirection::in ? 2 : 3;
  return std::holds_alternative<ProtocolMatch>(match) ? 4 : 5;
}

// Tells whether `-m conntrack` asks as much together with others as by itself. Where there is no connection, a state
// that such a packet has decides alone.
bool can_be_joined(const Match& match) {
  constexpr std::uint8_t without_connection = ConntrackStateMatch::invalid | ConntrackStateMatch::untracked;
  const auto* state = std::get_if<ConntrackStateMatch>(&match);
  if (state != nullptr) return ((state->states & without_connection) != 0) == state->negated;
  const auto* unknown = std::get_if<UnknownMatch>(&match);
  return unknown == nullptr || unknown->words.find("--ctstate") == std::string::npos;
}

}  // namespace

std::string iptables_words(const Match& match) {
  return std::visit([](const auto& one) { return one.to_iptables(); }, match);
}

std::string iptables_words(const Target& target) {
  return std::visit([](const auto& one) { return one.to_iptables(); }, target);
}

std::string iptables_words(const Rule& rule) {
  const std::string chain = printable(rule.chain);
  std::string text = rule.insert_at ? fmt::format("-I {} {}", chain, *rule.insert_at) : "-A " + chain;
  constexpr std::string_view conntrack = "-m conntrack";
  bool is_conntrack = false;
  for (const Match& match : rule.matches) {
    const std::string words = iptables_words(match);
    const bool is_one = words.starts_with(conntrack) && can_be_joined(match);
    const bool asks_more = is_conntrack && is_one;
    is_conntrack = is_one;
    text += asks_more ? words.substr(conntrack.size()) : " " + words;
  }
  const std::string target = iptables_words(rule.target);
  return target.empty() ? text : text + " " + target;
}

Rule in_iptables_order(Rule rule) {
  // Most are: sort_stably would allocate for each of thousands of rules.
  if (!std::ranges::is_sorted(rule.matches, {}, place)) sort_stably(rule.matches, {}, place);
  return rule;
}

Ruleset in_iptables_order(Ruleset ruleset) {
  for (Rule& rule : ruleset.rules) rule = in_iptables_order(std::move(rule));
  return ruleset;
}

std::string iptables_restore(const Ruleset& ruleset, Family family) {
  std::string text;
  for (Table table : {Table::mangle, Table::nat, Table::raw}) {  // in alphabetical order, as upstream
    const std::vector<Chain> used = chains(ruleset, table, family);
    if (used.empty()) continue;
    text += fmt::format("*{}\n", name(table));
    for (const Chain& chain : used) {
      if (!is_builtin(chain.name)) text += fmt::format("-N {}\n", chain.name);
    }
    for (const Rule& rule : ruleset.rules) {
      if (rule.table == table && rule.families.contains(family)) text += iptables_words(rule) + "\n";
    }
    text += "COMMIT\n";
  }
  return text;
}

}  // namespace sidetrack
