// SPDX-License-Identifier: GPL-2.0-or-later
#include "pod/policy_rule.h"

#include <fmt/format.h>

#include <algorithm>

#include "pod/ztunnel.h"

namespace sidetrack {

PolicyRule fwmark_rule(Family family, std::uint32_t mark, std::uint32_t table, std::uint32_t mask) {
  PolicyRule rule;
  rule.before_others = true;
  rule.family = family;
  rule.table = table;
  rule.mark = mark;
  rule.mask = mask;
  rule.origin = RoutingOrigin::ours;
  return rule;
}

bool is_fwmark_rule(const PolicyRule& rule) {
  PolicyRule plain = fwmark_rule(rule.family, rule.mark, rule.table, rule.mask);
  static_cast<RulePlace&>(plain) = rule;
  plain.origin = rule.origin;
  return rule.mark != 0 && rule.mask != 0 && rule == plain;
}

bool is_of_ambient(const PolicyRule& rule) {
  return rule.mark == ztunnel_connection_mark && rule.mask == ztunnel_mask && rule.table == ztunnel_route_table;
}

std::vector<PolicyRule> default_rules() {
  const auto lookup = [](Family family, std::uint32_t priority, std::uint32_t table) {
    PolicyRule rule;
    rule.family = family;
    rule.priority = priority;
    rule.table = table;
    return rule;
  };
  return {lookup(Family::ipv4, 0, local_table), lookup(Family::ipv4, 32766, main_table),
          lookup(Family::ipv4, 32767, default_table), lookup(Family::ipv6, 0, local_table),
          lookup(Family::ipv6, 32766, main_table)};
}

std::string selector(const PolicyRule& rule) {
  std::string text;
  const auto add = [&](const std::string& condition) { text += (text.empty() ? "" : " ") + condition; };
  if (rule.inverted) add("not");
  if (rule.from) add("from " + rule.from->text());
  if (rule.to) add("to " + rule.to->text());
  if (rule.mask == 0xffffffff) add(fmt::format("fwmark {}", rule.mark));
  if (rule.mask != 0 && rule.mask != 0xffffffff) add(fmt::format("fwmark {:#x}/{:#x}", rule.mark, rule.mask));
  if (!rule.in.empty()) add("iif " + rule.in);
  if (!rule.out.empty()) add("oif " + rule.out);
  if (!rule.more.empty()) add(rule.more);
  return text.empty() ? "from all" : text;
}

std::string ip_arguments(const PolicyRule& rule) {
  constexpr const char* actions[] = {"lookup",   "blackhole", "unreachable",
                                     "prohibit", "nop",       "an action that is not followed"};
  std::string text = selector(rule) + " " + actions[static_cast<std::size_t>(rule.action)];
  if (rule.action == PolicyRule::Action::lookup) text += " " + table_name(rule.table);
  if (rule.suppressed) text += fmt::format(" suppress_prefixlength {}", *rule.suppressed);
  return text;
}

std::string ip_words(const PolicyRule& rule) {
  return fmt::format("ip{} rule {}{}", rule.family == Family::ipv6 ? " -6" : "",
                     rule.priority ? fmt::format("{}: ", *rule.priority) : "", ip_arguments(rule));
}

bool may_divert(const PolicyRule& rule, const PolicyRule& marked) {
  if (rule.family != marked.family || rule.action == PolicyRule::Action::none) return false;
  const bool other_mark = ((rule.mark ^ marked.mark) & rule.mask & marked.mask) != 0;
  if (other_mark && !rule.inverted) return false;
  const bool lookup = rule.action == PolicyRule::Action::lookup;
  return !lookup || (rule.table != local_table && rule.table != marked.table);
}

bool goes_before(const PolicyRule& marked, const PolicyRule& rule) {
  return rule.priority.value_or(0) > 0 && may_divert(rule, marked);
}

std::optional<std::uint32_t> place_before(const PolicyRule& rule, std::optional<std::uint32_t> other) {
  if (!other) return rule.priority;
  return std::min(rule.priority.value_or(*other - 1), *other - 1);
}

}  // namespace sidetrack
