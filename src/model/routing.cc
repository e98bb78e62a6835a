// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/routing.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/pod.h"

namespace sidetrack {
namespace {

std::string words(const AddressRange& range) { return range.prefix_length() == 0 ? "default" : range.text(); }

std::string table_name(std::uint32_t table) {
  switch (table) {
    case local_table:
      return "local";
    case main_table:
      return "main";
    case default_table:
      return "default";
    default:
      return std::to_string(table);
  }
}

std::string mark_words(std::uint32_t mark, std::uint32_t mask) {
  return mask == 0xffffffff ? fmt::format("{}", mark) : fmt::format("{:#x}/{:#x}", mark, mask);
}

}  // namespace

bool is_of_ambient(const PolicyRule& rule) {
  return rule.mark == ztunnel_connection_mark && rule.mask == ztunnel_mask && rule.table == ztunnel_route_table;
}

bool is_of_ambient(const Routing& routing) {
  return std::ranges::any_of(routing.policy_rules, [](const PolicyRule& rule) { return is_of_ambient(rule); }) ||
         std::ranges::any_of(routing.local_routes,
                             [](const LocalRoute& route) { return route.table == ztunnel_route_table; });
}

Routing without_origin(Routing routing) {
  for (PolicyRule& rule : routing.policy_rules) rule.by_agent = false;
  for (LocalRoute& route : routing.local_routes) route.by_agent = false;
  return routing;
}

std::string mark_words(const PolicyRule& rule) { return mark_words(rule.mark, rule.mask); }

std::string ip_words(const NetworkRoute& route) {
  static constexpr const char* kinds[] = {"", "local ", "blackhole ", "unreachable ", "prohibit ", "throw ", ""};
  return fmt::format("ip{} route {}{}{} table {}", route.to.family() == Family::ipv6 ? " -6" : "",
                     kinds[static_cast<std::size_t>(route.kind)], words(route.to),
                     route.device.empty() ? "" : " dev " + route.device, table_name(route.table));
}

std::string conditions(const RoutingRule& rule) {
  std::string text;
  const auto add = [&](const std::string& condition) { text += (text.empty() ? "" : " ") + condition; };
  if (rule.inverted) add("not");
  if (rule.from) add("from " + rule.from->text());
  if (rule.to) add("to " + rule.to->text());
  if (rule.mask != 0) add("fwmark " + mark_words(rule.mark, rule.mask));
  if (!rule.in.empty()) add("iif " + rule.in);
  if (!rule.out.empty()) add("oif " + rule.out);
  if (!rule.more.empty()) add(rule.more);
  return text.empty() ? "from all" : text;
}

std::string ip_words(const RoutingRule& rule) {
  constexpr const char* actions[] = {"lookup",   "blackhole", "unreachable",
                                     "prohibit", "nop",       "an action that is not followed"};
  std::string action = actions[static_cast<std::size_t>(rule.action)];
  if (rule.action == RoutingRule::Action::lookup) action += " " + table_name(rule.table);
  if (rule.suppressed) action += fmt::format(" suppress_prefixlength {}", *rule.suppressed);
  return fmt::format("ip{} rule {}: {} {}", rule.family == Family::ipv6 ? " -6" : "", rule.priority, conditions(rule),
                     action);
}

std::vector<RoutingRule> default_rules() {
  const auto lookup = [](Family family, std::uint32_t priority, std::uint32_t table) {
    RoutingRule rule;
    rule.family = family;
    rule.priority = priority;
    rule.table = table;
    return rule;
  };
  return {lookup(Family::ipv4, 0, local_table), lookup(Family::ipv4, 32766, main_table),
          lookup(Family::ipv4, 32767, default_table), lookup(Family::ipv6, 0, local_table),
          lookup(Family::ipv6, 32766, main_table)};
}

std::vector<std::string> ip_commands(const Routing& routing, std::string_view verb) {
  const auto ip = [](Family family) { return family == Family::ipv4 ? "ip" : "ip -6"; };
  std::vector<std::string> lines;
  for (const PolicyRule& r : routing.policy_rules) {
    const auto place = r.after_others ? r.after_others : r.preference;
    lines.push_back(fmt::format("{} rule {}{} fwmark {} lookup {}", ip(r.family), verb,
                                place ? fmt::format(" pref {}", *place) : "", mark_words(r), r.table));
  }
  for (const LocalRoute& r : routing.local_routes) {
    lines.push_back(fmt::format("{} route {} local default dev lo table {}", ip(r.family), verb, r.table));
  }
  for (const Address& a : routing.loopback_addresses) {
    lines.push_back(fmt::format("{} addr {} {} dev lo", ip(a.family), verb, AddressRange::single(a).text()));
  }
  return lines;
}

namespace {
auto* named(auto& interfaces, const std::string& name) {
  const auto found = std::ranges::find(interfaces, name, &Interface::name);
  return found != interfaces.end() ? &*found : nullptr;
}
}  // namespace

const Interface* PodView::interface(const std::string& name) const { return named(interfaces, name); }
Interface* PodView::interface(const std::string& name) { return named(interfaces, name); }

void PodView::insert(const RoutingRule& rule) {
  const auto next = std::ranges::find_if(
      rules, [&](const RoutingRule& there) { return there.family == rule.family && there.priority > rule.priority; });
  rules.insert(next, rule);
}

std::vector<PodView> by_each_hop(const PodView& pod) {
  std::vector<PodView> all{pod};
  for (std::size_t hop = 0;; ++hop) {
    PodView next = pod;
    bool any = false;
    for (NetworkRoute& route : next.routes) {
      if (hop >= route.other_devices.size()) continue;
      std::swap(route.device, route.other_devices[hop]);
      any = true;
    }
    if (!any) return all;
    all.push_back(std::move(next));
  }
}

bool may_divert(const RoutingRule& rule, const PolicyRule& marked) {
  if (rule.family != marked.family || rule.action == RoutingRule::Action::none) return false;
  const bool other_mark = ((rule.mark ^ marked.mark) & rule.mask & marked.mask) != 0;
  if (other_mark && !rule.inverted) return false;
  const bool lookup = rule.action == RoutingRule::Action::lookup;
  return !lookup || (rule.table != local_table && rule.table != marked.table);
}

std::optional<std::uint32_t> place_before(const PolicyRule& rule, std::optional<std::uint32_t> other) {
  if (!other) return rule.preference;
  return std::min(rule.preference.value_or(*other - 1), *other - 1);
}

bool goes_before(const PolicyRule& marked, const RoutingRule& rule) {
  return rule.priority > 0 && may_divert(rule, marked);
}

void add(PodView& pod, const Routing& added) {
  for (const PolicyRule& one : added.policy_rules) {
    RoutingRule rule;
    rule.family = one.family;
    rule.mark = one.mark;
    rule.mask = one.mask;
    rule.table = one.table;
    rule.ours = true;
    const auto before =
        std::ranges::find_if(pod.rules, [&](const RoutingRule& there) { return goes_before(one, there); });
    rule.priority =
        place_before(one, before != pod.rules.end() ? std::optional(before->priority) : std::nullopt).value_or(32765);
    pod.insert(rule);
  }
  for (const LocalRoute& one : added.local_routes) {
    pod.routes.push_back(
        {AddressRange::prefix(Address::any(one.family), 0), "lo", NetworkRoute::Kind::local, one.table});
  }
  if (Interface* lo = pod.interface("lo")) {
    for (const Address& address : added.loopback_addresses) lo->addresses.push_back({address, address.bits()});
  }
}

void drop_our_rules(PodView& pod) { std::erase_if(pod.rules, &RoutingRule::ours); }

}  // namespace sidetrack
