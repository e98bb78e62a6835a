// SPDX-License-Identifier: GPL-2.0-or-later
#include "apply/without_others.h"

#include <algorithm>
#include <iterator>

#include "pod/local_ranges.h"
#include "walk/addresses.h"

namespace sidetrack {
namespace {

// Tells the kernel's route to the network of an address that lo has.
bool is_of_loopback(const Route& route, const PodView& pod) {
  const Interface* lo = pod.interface("lo");
  return lo != nullptr && std::ranges::any_of(lo->addresses, [&](const InterfaceAddress& own) {
           return own.address.family == route.to.family() &&
                  AddressRange::prefix(own.address, own.prefix_length) == route.to;
         });
}

// A route that does not decide whether a packet gets to the proxy. In table local there is none but the kernel's.
bool is_usual(const Route& route, const Plan& plan, const PodView& pod) {
  const bool in_our_table = std::ranges::any_of(plan.routing.local_routes, [&](const Route& ours) {
    return ours.family() == route.family() && ours.table == route.table;
  });
  if (in_our_table) return route.kind == Route::Kind::local;
  return route.kind == Route::Kind::unicast && route.table != local_table &&
         (!route.has_hop_by("lo") || is_of_loopback(route, pod));
}

bool has_family(const PodView& pod, Family family) {
  return family == Family::ipv4 || own_address(pod, family).has_value();
}

// A policy rule of another program that decides by itself: what it matches is sent nowhere, or nobody knows where.
bool refuses(const PolicyRule& rule) {
  return !rule.is_ours() && rule.action != PolicyRule::Action::lookup && rule.action != PolicyRule::Action::none;
}

// It decides about packets alone that have a mark: whoever marks them means it.
bool is_of_marked(const PolicyRule& rule) { return !rule.inverted && (rule.mark & rule.mask) != 0; }

// A policy rule of another program by which packets that are not marked stay in the pod, too.
bool leads_into_table_of(const PolicyRule& rule, const Plan& plan) {
  if (rule.is_ours() || rule.action != PolicyRule::Action::lookup || is_of_marked(rule)) return false;
  return std::ranges::any_of(plan.routing.policy_rules, [&](const PolicyRule& ours) {
    return ours.family == rule.family && ours.table == rule.table;
  });
}

// Removes the rules of other programs that take what is marked before ours does.
void drop_before(std::vector<PolicyRule>& rules, const PolicyRule& ours) {
  const auto end = std::ranges::find_if(rules, [&](const PolicyRule& rule) {
    return rule.is_ours() && rule.family == ours.family && rule.mark == ours.mark && rule.table == ours.table;
  });
  const std::vector<PolicyRule> usual = default_rules();
  const auto rest = std::remove_if(rules.begin(), end, [&](const PolicyRule& rule) {
    return !rule.is_ours() && may_divert(rule, ours) && std::ranges::find(usual, rule) == usual.end();
  });
  rules.erase(rest, end);
}

}  // namespace

PodView without_others(PodView pod, const Plan& plan) {
  std::erase_if(pod.rules, [](const PolicyRule& rule) { return refuses(rule) && !is_of_marked(rule); });
  std::erase_if(pod.rules, [&](const PolicyRule& rule) { return leads_into_table_of(rule, plan); });
  for (const PolicyRule& ours : plan.routing.policy_rules) drop_before(pod.rules, ours);
  for (const PolicyRule& rule : default_rules()) {  // put back what was deleted
    if (std::ranges::find(pod.rules, rule) == pod.rules.end()) pod.insert(rule);
  }
  pod.tcp_fwmark_accept = false;
  for (Interface& interface : pod.interfaces) {
    interface.src_valid_mark = false;
    interface.rules_of_frames = {};
    for (InterfaceAddress& own : interface.addresses) own.is_local = own.network_is_local = true;
  }
  std::erase_if(pod.routes, [&](const Route& route) { return !is_usual(route, plan, pod); });
  std::vector<Route> within_local;  // they take what is for the pod's own addresses
  if (pod.has_one_table() != false)
    std::ranges::transform(main_routes_within_local(pod), std::back_inserter(within_local),
                           [](const Route* each) { return *each; });
  std::erase_if(pod.routes,
                [&](const Route& route) { return std::ranges::find(within_local, route) != within_local.end(); });
  Interface* lo = pod.interface("lo");
  if (lo == nullptr) return pod;
  lo->up = true;
  for (const Family family : plan.families.list()) {
    const Address address = Address::loopback(family);
    const auto there = std::ranges::find(lo->addresses, address, &InterfaceAddress::address);
    if (has_family(pod, family) && there == lo->addresses.end()) {
      lo->addresses.insert(lo->addresses.begin(), {address, family == Family::ipv4 ? 8 : 128});
    }
  }
  return pod;
}

}  // namespace sidetrack
