// SPDX-License-Identifier: GPL-2.0-or-later
#include "analyse/route.h"

#include <algorithm>

namespace sidetrack {
namespace {

bool connects(const InterfaceAddress& own, const Address& destination) {
  return AddressRange::prefix(own.address, own.prefix_length).contains(destination);
}

const Interface* find(const PodView& pod, const std::string& name) {
  const auto found = std::ranges::find(pod.interfaces, name, &Interface::name);
  return found != pod.interfaces.end() ? &*found : nullptr;
}

// The longest prefix that holds the destination.
const NetworkRoute* network_route(const PodView& pod, const Address& destination) {
  const NetworkRoute* best = nullptr;
  for (const NetworkRoute& route : pod.routes) {
    if (!route.to.contains(destination)) continue;
    if (best == nullptr || route.to.prefix_length() > best->to.prefix_length()) best = &route;
  }
  return best;
}

bool has_local_route(const PodView& pod, const PolicyRule& rule) {
  return std::ranges::find(pod.local_routes, LocalRoute{rule.family, rule.table}) != pod.local_routes.end();
}

}  // namespace

// A prefix on lo is local as a whole in IPv4 (fib_add_ifaddr), so all of 127.0.0.0/8 is; in IPv6 each address alone.
bool is_local(const PodView& pod, const Address& address) {
  for (const Interface& interface : pod.interfaces) {
    for (const InterfaceAddress& own : interface.addresses) {
      if (own.address == address) return true;
      if (interface.name == "lo" && address.family == Family::ipv4 && connects(own, address)) return true;
    }
  }
  return false;
}

std::optional<Route> route(const PodView& pod, const Address& destination, std::uint32_t mark,
                           const std::string& bound) {
  if (is_local(pod, destination)) return Route{Route::Kind::local, "lo", nullptr};  // table local comes first
  for (const PolicyRule& rule : pod.policy_rules) {
    if (rule.family == destination.family && rule.mark == mark && has_local_route(pod, rule)) {
      return Route{Route::Kind::by_mark, "lo", &rule};
    }
  }
  if (!bound.empty()) return Route{Route::Kind::onward, bound, nullptr};
  if (const NetworkRoute* found = network_route(pod, destination)) {
    return Route{Route::Kind::onward, found->device, nullptr};
  }
  return {};
}

std::optional<Address> source_for(const PodView& pod, const Route& route, const Address& destination) {
  if (route.kind == Route::Kind::by_mark) return destination;  // a local route without prefsrc (ip_route_output_key)
  if (route.kind == Route::Kind::local) {
    // To an address of its own, itself; of the rest of 127.0.0.0/8, 127.0.0.1.
    const bool own = std::ranges::any_of(pod.interfaces, [&](const Interface& interface) {
      return std::ranges::any_of(interface.addresses, [&](const auto& a) { return a.address == destination; });
    });
    if (own) return destination;
    return Address::loopback(Family::ipv4);
  }
  const Interface* interface = find(pod, route.device);
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
  const Interface* found = find(pod, interface);
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
