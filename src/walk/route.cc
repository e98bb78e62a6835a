// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk/route.h"

#include <fmt/format.h>

#include <algorithm>

#include "pod/local_ranges.h"
#include "walk/observer.h"

namespace sidetrack {
namespace {

bool rejects(const Route& route) {
  using Kind = Route::Kind;
  return route.kind == Kind::blackhole || route.kind == Kind::unreachable || route.kind == Kind::prohibit;
}

// Returns whether the route counts: a socket that is bound to an interface takes no route by another one
// (fib_lookup_good_nhc, and rt6_score_route with RT6_LOOKUP_F_IFACE). In IPv4, what rejects is asked before the device
// is (fib_table_lookup); in IPv6 it is a route by lo.
bool counts(const Route& route, const RouteKey& key) {
  using Kind = Route::Kind;
  if (route.kind == Kind::unknown) return true;
  const bool is_by_none = route.kind != Kind::unicast && route.kind != Kind::local;
  if (is_by_none && key.destination.family == Family::ipv4) return true;
  key.ask_bound();
  if (key.bound.empty()) return true;
  return is_by_none ? key.bound == "lo" : route.has_hop_by(key.bound);
}

// The kernel's route to an own address is one by the device that has it.
bool has_route_to_own(const PodView& pod, const RouteKey& key) {
  if (!is_own(pod, key.destination, key.observer)) return false;
  key.ask_bound();
  return key.bound.empty() || is_own_of(pod, key.bound, key.destination, key.observer);
}

// Returns the longest prefix of a table that holds the destination, of those that may count.
template <typename MayCount>
const Route* longest(const PodView& pod, std::uint32_t table, const RouteKey& key, const MayCount& may_count) {
  const Route* best = nullptr;
  for (const Route& route : pod.routes) {
    if (route.table != table || !may_count(route) || !contains(route.to, key.destination, key.observer)) continue;
    if (!counts(route, key)) continue;
    if (best == nullptr || route.to.prefix_length() > best->to.prefix_length()) best = &route;
  }
  return best;
}

const Route* longest(const PodView& pod, std::uint32_t table, const RouteKey& key) {
  return longest(pod, table, key, [](const Route&) { return true; });
}

// Returns the route that another program has to a part of one of the pod's networks, such as one address of
// 127.0.0.0/8, unless the kernel's route to the address itself is longer.
const Route* longest_within_own(const PodView& pod, const RouteKey& key) {
  const Route* found = longest(pod, local_table, key, [&](const Route& route) {
    return std::ranges::any_of(own_ranges(pod.interfaces, route.family()),
                               [&](const AddressRange& own) { return is_to_part(route, own); });
  });
  if (found == nullptr || found->to.prefix_length() == key.destination.bits()) return found;
  for (const Interface& interface : pod.interfaces) {
    for (const InterfaceAddress& own : interface.addresses) {
      if (own.is_local && contains(AddressRange::single(own.address), key.destination, key.observer)) return nullptr;
    }
  }
  return found;
}

// Returns the route of table main to a part of what is local, if that prefix is the longest of both tables.
const Route* longest_in_main(const PodView& pod, const RouteKey& key) {
  if (key.destination.family == Family::ipv6) return nullptr;
  const Route* best = nullptr;
  for (const Route* route : main_routes_within_local(pod)) {
    if (best != nullptr && best->to.prefix_length() >= route->to.prefix_length()) continue;
    if (contains(route->to, key.destination, key.observer) && counts(*route, key)) best = route;
  }
  if (best == nullptr) return nullptr;
  const auto is_longer = [&](const AddressRange& local) {
    return local.prefix_length() >= best->to.prefix_length() && contains(local, key.destination, key.observer);
  };
  const bool is_in_local = std::ranges::any_of(own_ranges(pod.interfaces, Family::ipv4), is_longer) ||
                           std::ranges::any_of(pod.routes, [&](const Route& route) {
                             return route.table == local_table && is_longer(route.to);
                           });
  return is_in_local ? nullptr : best;
}

// fib_rule_match, fib4_rule_match, fib6_rule_match. A source that is not chosen yet is 0.0.0.0 there.
Truth truth(const PolicyRule& rule, const RouteKey& key) {
  if (key.observer != nullptr && rule.mask != 0)
    key.observer->mark(key.mark, key.own_bits, rule.mark & rule.mask, rule.mask);
  if (key.observer != nullptr && (!rule.in.empty() || !rule.out.empty())) key.observer->interface();
  const Address source = key.source.value_or(Address::any(key.destination.family));
  const bool no = (rule.from && !contains(*rule.from, source, key.observer)) ||
                  (rule.to && !contains(*rule.to, key.destination, key.observer)) ||
                  ((rule.mark ^ key.mark) & rule.mask) != 0 || (!rule.in.empty() && rule.in != key.in) ||
                  (!rule.out.empty() && rule.out != key.bound);
  if (no) return rule.inverted ? Truth::yes : Truth::no;
  if (!rule.more.empty()) return Truth::unknown;
  return rule.inverted ? Truth::no : Truth::yes;
}

// What a rule that matches finds. Nothing: the next one is asked.
std::optional<RouteLookup> found(const PodView& pod, const PolicyRule& rule, const RouteKey& key) {
  RouteLookup result;
  result.rule = &rule;
  switch (rule.action) {
    case PolicyRule::Action::none:
      return {};
    case PolicyRule::Action::blackhole:
    case PolicyRule::Action::unreachable:
    case PolicyRule::Action::prohibit:
      return result;
    case PolicyRule::Action::unknown:
      result.kind = RouteLookup::Kind::unknown;
      return result;
    case PolicyRule::Action::lookup:
      break;
  }
  const Route* in_main = rule.table == local_table ? longest_in_main(pod, key) : nullptr;
  const std::optional<bool> is_one = in_main != nullptr ? pod.has_one_table() : false;
  if (!is_one) {
    result.kind = RouteLookup::Kind::unknown;
    result.route = in_main;
    return result;
  }
  const bool is_own = !*is_one && rule.table == local_table && has_route_to_own(pod, key);
  result.route = *is_one ? in_main : is_own ? longest_within_own(pod, key) : longest(pod, rule.table, key);
  if (result.route == nullptr && is_own && rule.suppressed < key.destination.bits()) {
    result.kind = RouteLookup::Kind::local;
    result.device = "lo";
    return result;
  }
  if (result.route == nullptr || result.route->kind == Route::Kind::throw_) return {};
  // Suppress only routes that do not reject: those end the lookup with their error (fib_rules_lookup).
  if (!rejects(*result.route) && result.route->to.prefix_length() <= rule.suppressed) return {};
  switch (result.route->kind) {
    case Route::Kind::unicast:
      result.kind = RouteLookup::Kind::unicast;
      result.device = key.bound.empty() ? result.route->device : key.bound;
      break;
    case Route::Kind::local:
      result.kind = RouteLookup::Kind::by_rule;
      result.device = "lo";
      break;
    case Route::Kind::unknown:
      result.kind = RouteLookup::Kind::unknown;
      break;
    case Route::Kind::blackhole:
    case Route::Kind::unreachable:
    case Route::Kind::prohibit:
    case Route::Kind::throw_:
      break;
  }
  return result;
}

RouteLookup from_rule(const PodView& pod, const RouteKey& key, std::size_t first) {
  for (std::size_t i = first; i < pod.rules.size(); ++i) {
    const PolicyRule& rule = pod.rules[i];
    const Truth matches = rule.family == key.destination.family ? truth(rule, key) : Truth::no;
    if (matches == Truth::no) continue;
    std::optional<RouteLookup> result = found(pod, rule, key);
    if (!result) continue;
    // Whether it matches is no matter if the next ones say the same.
    if (matches == Truth::unknown && from_rule(pod, key, i + 1) != *result) result->kind = RouteLookup::Kind::unknown;
    return *result;
  }
  return {};
}

}  // namespace

void RouteKey::ask_bound() const {
  if (observer != nullptr && bound_as_asked) observer->interface();
}

bool is_local(const PodView& pod, const Address& address, Observer* observer) {
  const RouteKey key{address, {}, 0, 0, "lo", "", observer};
  if (const Route* in_main = longest_in_main(pod, key); in_main != nullptr && pod.has_one_table().value_or(true))
    return in_main->kind == Route::Kind::local;
  const bool own = is_own(pod, address, observer);
  const Route* route = own ? longest_within_own(pod, key) : longest(pod, local_table, key);
  return route != nullptr ? route->kind == Route::Kind::local : own;
}

RouteLookup route(const PodView& pod, const RouteKey& key) {
  RouteLookup found = from_rule(pod, key, 0);
  if (found.exists() || key.destination.family == Family::ipv6) return found;
  // An IPv4 socket that is bound to an interface sends by it all the same (ip_route_output_key_hash_rcu).
  key.ask_bound();
  if (!key.bound.empty()) {
    found.kind = RouteLookup::Kind::unicast;
    found.device = key.bound;
  }
  return found;
}

const Route* default_route(const PodView& pod, Family family) {
  const auto found = std::ranges::find_if(pod.routes, [&](const Route& route) {
    return route.to == AddressRange::prefix(Address::any(family), 0) && route.table == main_table &&
           route.kind == Route::Kind::unicast;
  });
  return found == pod.routes.end() ? nullptr : &*found;
}

std::string ip_words(const RouteLookup& route) {
  const bool is_route =
      route.route != nullptr && (route.kind != RouteLookup::Kind::unknown || route.route->kind == Route::Kind::unknown);
  if (is_route) return ip_words(*route.route);
  return route.rule != nullptr ? ip_words(*route.rule) : "";
}

std::string no_route(const RouteLookup& none, const Address& to) {
  const std::string words = ip_words(none);
  return fmt::format("no route to {}{}", to.text(), words.empty() ? "" : fmt::format(" ({})", words));
}

std::optional<Address> redirect_address(const PodView& pod, const std::string& interface, const Address& destination,
                                        Observer* observer) {
  const Interface* found = pod.interface(interface);
  if (found == nullptr) return {};
  const bool link_local = is_link_local(destination, observer);
  const bool loopback = is_loopback(destination, observer);
  const bool scoped = destination.family == Family::ipv6 && (link_local || loopback);
  for (const InterfaceAddress& own : found->addresses) {
    if (own.address.family != destination.family) continue;
    const bool same_scope = own.address.is_link_local() == link_local && own.address.is_loopback() == loopback;
    if (!scoped || same_scope) return own.address;
  }
  return {};
}

}  // namespace sidetrack
