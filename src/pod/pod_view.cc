// SPDX-License-Identifier: GPL-2.0-or-later
#include "pod/pod_view.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace sidetrack {
namespace {

auto* named(auto& interfaces, const std::string& name) {
  const auto found = std::ranges::find(interfaces, name, &Interface::name);
  return found != interfaces.end() ? &*found : nullptr;
}

}  // namespace

const Interface* PodView::interface(const std::string& name) const { return named(interfaces, name); }
Interface* PodView::interface(const std::string& name) { return named(interfaces, name); }

std::vector<Address> PodView::addresses() const {
  std::vector<Address> all;
  for (const Interface& interface : interfaces) {
    if (interface.name == "lo") continue;
    for (const InterfaceAddress& each : interface.addresses) {
      if (!each.address.is_link_local()) all.push_back(each.address);
    }
  }
  return all;
}

bool PodView::has_address(Family family) const {
  return std::ranges::any_of(addresses(), [&](const Address& address) { return address.family == family; });
}

std::optional<bool> PodView::has_one_table() const {
  static const std::vector<PolicyRule> usual = default_rules();
  const auto lacks_any = [](const std::vector<PolicyRule>& all, const std::vector<PolicyRule>& of) {
    return std::ranges::any_of(of, [&](const PolicyRule& rule) {
      return rule.family == Family::ipv4 && std::ranges::find(all, rule) == all.end();
    });
  };
  if (lacks_any(usual, rules) || lacks_any(rules, usual)) return false;
  return tables_are_apart ? std::optional(!*tables_are_apart) : std::nullopt;
}

void PodView::insert(const PolicyRule& rule) {
  const auto next = std::ranges::find_if(
      rules, [&](const PolicyRule& there) { return there.family == rule.family && there.priority > rule.priority; });
  rules.insert(next, rule);
}

Routing routing_of_mark(const PodView& pod, std::uint32_t mark) {
  Routing routing;
  if (mark == 0) return routing;
  for (const PolicyRule& rule : pod.rules) {
    if (rule.mark != mark || rule.action != PolicyRule::Action::lookup) continue;
    routing.policy_rules.push_back(rule);
    std::ranges::copy_if(pod.routes, std::back_inserter(routing.local_routes), [&](const Route& route) {
      return route.kind == Route::Kind::local && route.device == "lo" && route.table == rule.table &&
             route.family() == rule.family;
    });
  }
  return routing;
}

std::vector<PodView> by_each_hop(const PodView& pod) {
  std::vector<PodView> all{pod};
  for (std::size_t hop = 0;; ++hop) {
    PodView next = pod;
    bool any = false;
    for (Route& route : next.routes) {
      if (hop >= route.other_devices.size()) continue;
      std::swap(route.device, route.other_devices[hop]);
      any = true;
    }
    if (!any) return all;
    all.push_back(std::move(next));
  }
}

void add_routing(PodView& pod, const Routing& added) {
  for (PolicyRule rule : added.policy_rules) {
    const auto before =
        std::ranges::find_if(pod.rules, [&](const PolicyRule& there) { return goes_before(rule, there); });
    const auto place = place_before(rule, before != pod.rules.end() ? before->priority : std::nullopt);
    static_cast<RulePlace&>(rule) = {place.value_or(32765), false};
    pod.insert(rule);
  }
  const auto add = [](auto& all, const auto& one) {
    if (std::ranges::find(all, one) == all.end()) all.push_back(one);
  };
  for (const Route& route : added.local_routes) add(pod.routes, route);
  if (Interface* lo = pod.interface("lo")) {
    for (const Address& address : added.loopback_addresses)
      add(lo->addresses, InterfaceAddress{address, address.bits()});
  }
}

void drop_our_rules(PodView& pod) { std::erase_if(pod.rules, &PolicyRule::is_ours); }

PodView with_routing(PodView pod, const Routing& routing) {
  drop_our_rules(pod);
  add_routing(pod, routing);
  return pod;
}

}  // namespace sidetrack
