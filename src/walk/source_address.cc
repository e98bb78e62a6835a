// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk/source_address.h"

#include <linux/rtnetlink.h>

#include <algorithm>
#include <vector>

#include "walk/observer.h"

namespace sidetrack {
namespace {

std::uint8_t scope_in_ipv4(const InterfaceAddress& own) {
  return own.address.is_loopback() ? std::uint8_t{RT_SCOPE_HOST} : own.scope;
}

// The first address of the interface in whose network `next` is, of no narrower scope; else its first one, or the first
// of another interface (inet_select_addr).
std::optional<Address> near(const PodView& pod, const Interface& interface, const std::optional<Address>& next,
                            std::uint8_t scope, Observer* observer = nullptr) {
  const std::uint8_t narrowest = interface.route_localnet ? RT_SCOPE_LINK : RT_SCOPE_HOST;
  std::optional<Address> first;
  for (const InterfaceAddress& own : interface.addresses) {
    if (own.address.family != Family::ipv4 || std::min(scope_in_ipv4(own), narrowest) > scope) continue;
    if (!next) return own.address;
    if (contains(AddressRange::prefix(own.address, own.prefix_length), *next, observer)) return own.address;
    if (!first) first = own.address;
  }
  if (first) return first;
  for (const Interface& other : pod.interfaces) {
    for (const InterfaceAddress& own : other.addresses) {
      if (own.address.family != Family::ipv4 || scope_in_ipv4(own) == RT_SCOPE_LINK) continue;
      if (scope_in_ipv4(own) <= scope) return own.address;
    }
  }
  return {};
}

// To an address of its own, itself, or in IPv4 the first one of its network; of the rest of a network on lo, the one
// there: 127.0.0.1 of 127.0.0.0/8.
std::optional<Address> source_to_itself(const PodView& pod, const Address& destination, Observer* observer) {
  for (const Interface& interface : pod.interfaces) {
    for (const InterfaceAddress& own : interface.addresses) {
      if (!contains(AddressRange::single(own.address), destination, observer)) continue;
      const bool first = destination.family == Family::ipv4 && interface.name != "lo";
      return first ? near(pod, interface, own.address, RT_SCOPE_HOST) : own.address;
    }
  }
  const InterfaceAddress* nearest = nullptr;
  if (const Interface* lo = pod.interface("lo")) {
    for (const InterfaceAddress& own : lo->addresses) {
      if (own.address.family != Family::ipv4) continue;
      if (!contains(AddressRange::prefix(own.address, own.prefix_length), destination, observer)) continue;
      if (nearest == nullptr || own.prefix_length > nearest->prefix_length) nearest = &own;
    }
  }
  return nearest != nullptr ? nearest->address : Address::loopback(Family::ipv4);
}

// ---- IPv6: RFC 6724 as ipv6_dev_get_saddr() has it

struct Candidate {
  const InterfaceAddress* own;
  bool of_device;  // by which the packet leaves
};

constexpr int link_scope = 2;  // linux: IPV6_ADDR_SCOPE_*
constexpr int site_scope = 5;
constexpr int global_scope = 14;

const AddressRange& site_local() {
  static const AddressRange range = *AddressRange::parse("fec0::/10");
  return range;
}

const AddressRange& orchids() {  // RFC 4843
  static const AddressRange range = *AddressRange::parse("2001:10::/28");
  return range;
}

int scope(const Address& address) {
  if (address.is_link_local() || address.is_loopback()) return link_scope;
  return site_local().contains(address) ? site_scope : global_scope;
}

// net/ipv6/addrlabel.c, the longest prefix first.
int label(const Address& address, Observer* observer = nullptr) {
  struct Label {
    AddressRange range;
    int number;
  };
  static const Label labels[] = {{*AddressRange::parse("::1/128"), 0},       {*AddressRange::parse("::/96"), 3},
                                 {*AddressRange::parse("::ffff:0:0/96"), 4}, {*AddressRange::parse("2001::/32"), 6},
                                 {*AddressRange::parse("2001:10::/28"), 7},  {*AddressRange::parse("3ffe::/16"), 12},
                                 {*AddressRange::parse("2002::/16"), 2},     {*AddressRange::parse("fec0::/10"), 11},
                                 {*AddressRange::parse("fc00::/7"), 5}};
  for (const Label& one : labels) {
    if (contains(one.range, address, observer)) return one.number;
  }
  return 1;
}

int common_bits(const Address& a, const Address& b) {
  int bits = 0;
  while (bits < a.bits() && AddressRange::prefix(a, bits + 1).contains(b)) ++bits;
  return bits;
}

// More bits of the destination are those of this address, as far as its network goes.
bool is_nearer(const InterfaceAddress& one, const InterfaceAddress& other, const Address& destination,
               Observer* observer) {
  const int alike = std::min({common_bits(one.address, other.address), one.prefix_length, other.prefix_length});
  return one.prefix_length > alike && contains(AddressRange::prefix(one.address, alike + 1), destination, observer);
}

// The observer is asked only what tells these apart.
class Preferred {
 public:
  Preferred(const std::vector<Candidate>& all, const Address& destination, Observer* observer)
      : destination_(destination), observer_(observer) {
    scope_ = is_link_local(destination, observer) || is_loopback(destination, observer) ? link_scope : global_scope;
    const bool sites =
        std::ranges::any_of(all, [](const Candidate& one) { return scope(one.own->address) == site_scope; });
    if (sites && contains(site_local(), destination, observer)) scope_ = site_scope;
  }

  // Rule by rule.
  bool operator()(const Candidate& one, const Candidate& other) {
    const auto equal = [&](const Candidate& candidate) {
      return contains(AddressRange::single(candidate.own->address), destination_, observer_);
    };
    if (equal(one)) return true;
    if (equal(other)) return false;
    if (distance(one) != distance(other)) return distance(one) < distance(other);
    if (one.own->deprecated != other.own->deprecated) return other.own->deprecated;
    if (one.of_device != other.of_device) return one.of_device;
    const int of_one = label(one.own->address);
    const int of_other = label(other.own->address);
    if (of_one != of_other) {
      if (!label_) label_ = label(destination_, observer_);
      if ((of_one == *label_) != (of_other == *label_)) return of_one == *label_;
    }
    const bool is_orchid = orchids().contains(one.own->address);
    if (is_orchid != orchids().contains(other.own->address))
      return is_orchid == contains(orchids(), destination_, observer_);
    return is_nearer(*one.own, *other.own, destination_, observer_);
  }

 private:
  [[nodiscard]] int distance(const Candidate& candidate) const {
    const int own = scope(candidate.own->address);
    return own >= scope_ ? own : 128 - own;
  }

  const Address& destination_;
  Observer* observer_;
  int scope_;
  std::optional<int> label_;  // of the destination
};

std::optional<Address> source_of_ipv6(const PodView& pod, const std::string& device, const Address& destination,
                                      Observer* observer) {
  const bool only_of_device = is_link_local(destination, observer) || is_multicast(destination, observer);
  std::vector<Candidate> all;
  for (const Interface& interface : pod.interfaces) {
    const bool of_device = interface.name == device;
    if (only_of_device && !of_device) continue;
    for (const InterfaceAddress& own : interface.addresses) {
      if (own.address.family == Family::ipv6) all.push_back({&own, of_device});
    }
  }
  if (all.empty()) return {};
  Preferred preferred(all, destination, observer);
  Candidate best = all.front();
  for (auto one = all.begin() + 1; one != all.end(); ++one) {
    if (preferred(*one, best)) best = *one;
  }
  return best.own->address;
}

}  // namespace

std::optional<Address> source_for(const PodView& pod, const RouteLookup& route, const Address& destination,
                                  Observer* observer) {
  if (route.route != nullptr && route.route->source) return route.route->source;
  if (route.kind == RouteLookup::Kind::local) return source_to_itself(pod, destination, observer);
  if (destination.family == Family::ipv6) return source_of_ipv6(pod, route.device, destination, observer);
  if (route.kind == RouteLookup::Kind::by_rule) return destination;  // without prefsrc, as ip_route_output_key says
  const Interface* interface = pod.interface(route.device);
  if (interface == nullptr) return {};
  const std::optional<Address> gateway = route.route != nullptr ? route.route->gateway : std::nullopt;
  return near(pod, *interface, gateway, gateway ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK);
}

std::optional<Address> masquerading(const PodView& pod, const RouteLookup& route, const Address& destination,
                                    Observer* observer) {
  if (destination.family == Family::ipv6) return source_of_ipv6(pod, route.device, destination, observer);
  const Interface* interface = pod.interface(route.device);
  if (interface == nullptr) return {};
  if (route.route != nullptr && route.route->gateway)
    return near(pod, *interface, route.route->gateway, RT_SCOPE_UNIVERSE);
  return near(pod, *interface, destination, RT_SCOPE_UNIVERSE, observer);
}

}  // namespace sidetrack
