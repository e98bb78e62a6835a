// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>
#include <string>

#include "walk/addresses.h"
#include "walk/explain.h"

namespace sidetrack {

class Observer;

// What the kernel's routing is asked.
struct RouteKey {
  Address destination;
  std::optional<Address> source;  // nothing: not chosen yet
  std::uint32_t mark = 0;
  std::uint32_t own_bits = 0;  // see MarkChange
  std::string in = "lo";       // lo: it is sent here
  std::string bound;           // the interface that the socket is bound to, or empty: no route by another one counts
  Observer* observer = nullptr;
  bool bound_as_asked = true;  // it is that of the packet that was asked about: the observer hears of it

  void ask_bound() const;
};

// What it says: by the policy rules, one after the other, and the longest prefix in the tables that they name.
struct RouteLookup {
  enum class Kind : std::uint8_t {
    none,     // there is none
    local,    // an own address
    by_rule,  // stays here, by a route of type local
    unicast,
    unknown,  // a policy rule or a route asks for what is not followed
  };
  Kind kind = Kind::none;
  std::string device;                // lo if it stays here
  const PolicyRule* rule = nullptr;  // that led there; of the pod
  const Route* route = nullptr;      // that was found; of the pod
  [[nodiscard]] bool exists() const { return kind != Kind::none; }
  [[nodiscard]] bool stays() const { return kind == Kind::local || kind == Kind::by_rule; }
  // Tells whether each connection gets one of several next hops.
  [[nodiscard]] bool has_hops() const {
    return kind == Kind::unicast && route != nullptr && !route->other_devices.empty();
  }
  friend bool operator==(const RouteLookup& a, const RouteLookup& b) {
    return a.kind == b.kind && a.device == b.device;
  }
};

[[nodiscard]] RouteLookup route(const PodView& pod, const RouteKey& key);

// Of table main; nullptr: there is none.
[[nodiscard]] const Route* default_route(const PodView& pod, Family family);

// What decided, as ip(8) has it: "ip route unreachable 10.0.0.0/8 table main". Empty if nothing did.
[[nodiscard]] std::string ip_words(const RouteLookup& route);
// "no route to 10.0.0.1 (ip route unreachable 10.0.0.0/8 table main)"
[[nodiscard]] std::string no_route(const RouteLookup& none, const Address& to);

// The address that REDIRECT in PREROUTING turns the destination into: of what came in by `interface`. Nothing: it has
// none of that family, and the packet is dropped (net/netfilter/nf_nat_redirect.c).
[[nodiscard]] std::optional<Address> redirect_address(const PodView& pod, const std::string& interface,
                                                      const Address& destination, Observer* observer = nullptr);

// Whether what is for the address stays in the pod.
[[nodiscard]] bool is_local(const PodView& pod, const Address& address, Observer* observer = nullptr);

}  // namespace sidetrack
