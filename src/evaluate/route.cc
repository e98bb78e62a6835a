// SPDX-License-Identifier: GPL-2.0-or-later
#include "evaluate/route.h"

#include <algorithm>

#include "evaluate/match.h"

namespace sidetrack {
namespace {

bool connects(const InterfaceAddress& own, const Address& destination) {
  return AddressRange::prefix(own.address, own.prefix_length).contains(destination);
}

// A prefix on lo is local as a whole in IPv4 (fib_add_ifaddr), so all of 127.0.0.0/8 is; in IPv6 each address alone.
bool is_own(const PodView& pod, const Address& address) {
  for (const Interface& interface : pod.interfaces) {
    for (const InterfaceAddress& own : interface.addresses) {
      if (own.address == address) return true;
      if (interface.name == "lo" && address.family == Family::ipv4 && connects(own, address)) return true;
    }
  }
  return false;
}

// The longest prefix of a table that holds the destination.
const NetworkRoute* longest(const PodView& pod, std::uint32_t table, const Address& destination) {
  const NetworkRoute* best = nullptr;
  for (const NetworkRoute& route : pod.routes) {
    if (route.table != table || !route.to.contains(destination)) continue;
    if (best == nullptr || route.to.prefix_length() > best->to.prefix_length()) best = &route;
  }
  return best;
}

// fib_rule_match, fib4_rule_match, fib6_rule_match. A source that is not chosen yet is 0.0.0.0 there.
Truth truth(const RoutingRule& rule, const RouteKey& key) {
  const bool no = (rule.from && !rule.from->contains(key.source.value_or(Address::any(key.destination.family)))) ||
                  (rule.to && !rule.to->contains(key.destination)) || ((rule.mark ^ key.mark) & rule.mask) != 0 ||
                  (!rule.in.empty() && rule.in != key.in) || (!rule.out.empty() && rule.out != key.bound);
  if (no) return rule.inverted ? Truth::yes : Truth::no;
  if (!rule.more.empty()) return Truth::unknown;
  return rule.inverted ? Truth::no : Truth::yes;
}

// What a rule that matches finds. Nothing: the next one is asked.
std::optional<Route> found(const PodView& pod, const RoutingRule& rule, const RouteKey& key) {
  Route result;
  result.rule = &rule;
  switch (rule.action) {
    case RoutingRule::Action::none:
      return {};
    case RoutingRule::Action::reject:
      return result;
    case RoutingRule::Action::unknown:
      result.kind = Route::Kind::unknown;
      return result;
    case RoutingRule::Action::lookup:
      break;
  }
  if (rule.table == local_table && is_own(pod, key.destination)) {
    result.kind = Route::Kind::local;
    result.device = "lo";
    return result;
  }
  result.route = longest(pod, rule.table, key.destination);
  if (result.route == nullptr || result.route->kind == NetworkRoute::Kind::next) return {};
  if (rule.suppressed && result.route->to.prefix_length() <= *rule.suppressed) return {};
  switch (result.route->kind) {
    case NetworkRoute::Kind::onward:
      result.kind = Route::Kind::onward;
      result.device = key.bound.empty() ? result.route->device : key.bound;
      break;
    case NetworkRoute::Kind::local:
      result.kind = Route::Kind::by_rule;
      result.device = "lo";
      break;
    case NetworkRoute::Kind::unknown:
      result.kind = Route::Kind::unknown;
      break;
    case NetworkRoute::Kind::rejected:
    case NetworkRoute::Kind::next:
      break;
  }
  return result;
}

Route from_rule(const PodView& pod, const RouteKey& key, std::size_t first) {
  for (std::size_t i = first; i < pod.rules.size(); ++i) {
    const RoutingRule& rule = pod.rules[i];
    const Truth matches = rule.family == key.destination.family ? truth(rule, key) : Truth::no;
    if (matches == Truth::no) continue;
    std::optional<Route> result = found(pod, rule, key);
    if (!result) continue;
    // Whether it matches is no matter if the next ones say the same.
    if (matches == Truth::unknown && from_rule(pod, key, i + 1) != *result) result->kind = Route::Kind::unknown;
    return *result;
  }
  Route none;  // a socket that is bound to an interface sends by it all the same (ip_route_output_key_hash_rcu)
  if (!key.bound.empty()) {
    none.kind = Route::Kind::onward;
    none.device = key.bound;
  }
  return none;
}

}  // namespace

bool is_local(const PodView& pod, const Address& address) {
  if (is_own(pod, address)) return true;
  const NetworkRoute* route = longest(pod, local_table, address);
  return route != nullptr && route->kind == NetworkRoute::Kind::local;
}

Route route(const PodView& pod, const RouteKey& key) { return from_rule(pod, key, 0); }

std::optional<Address> source_for(const PodView& pod, const Route& route, const Address& destination) {
  if (route.kind == Route::Kind::by_rule) return destination;  // a local route without prefsrc (ip_route_output_key)
  if (route.kind == Route::Kind::local) {
    // To an address of its own, itself; of the rest of 127.0.0.0/8, 127.0.0.1.
    const bool own = std::ranges::any_of(pod.interfaces, [&](const Interface& interface) {
      return std::ranges::any_of(interface.addresses, [&](const auto& a) { return a.address == destination; });
    });
    if (own) return destination;
    return Address::loopback(Family::ipv4);
  }
  const Interface* interface = pod.interface(route.device);
  if (interface == nullptr) return {};
  std::optional<Address> first;
  for (const InterfaceAddress& own : interface->addresses) {
    if (own.address.family != destination.family) continue;
    if (connects(own, destination)) return own.address;
    const bool fits = own.address.family == Family::ipv4 || own.address.is_link_local() == destination.is_link_local();
    if (!first && fits) first = own.address;
  }
  return first;
}

std::optional<Address> redirect_address(const PodView& pod, const std::string& interface, const Address& destination) {
  const Interface* found = pod.interface(interface);
  if (found == nullptr) return {};
  const bool scoped = destination.family == Family::ipv6 && (destination.is_link_local() || destination.is_loopback());
  for (const InterfaceAddress& own : found->addresses) {
    if (own.address.family != destination.family) continue;
    const bool same_scope = own.address.is_link_local() == destination.is_link_local() &&
                            own.address.is_loopback() == destination.is_loopback();
    if (!scoped || same_scope) return own.address;
  }
  return {};
}

std::optional<OwnAddress> own_address(const PodView& pod, Families families) {
  for (Family family : families.list()) {
    for (const Interface& interface : pod.interfaces) {
      if (interface.name == "lo") continue;
      for (const InterfaceAddress& own : interface.addresses) {
        if (own.address.family == family && !own.address.is_link_local())
          return OwnAddress{own.address, interface.name};
      }
    }
  }
  return {};
}

std::optional<std::string> interface_of(const PodView& pod, const Address& address) {
  for (const Interface& interface : pod.interfaces) {
    if (interface.name == "lo") continue;
    if (std::ranges::find(interface.addresses, address, &InterfaceAddress::address) != interface.addresses.end()) {
      return interface.name;
    }
  }
  return {};
}

}  // namespace sidetrack
