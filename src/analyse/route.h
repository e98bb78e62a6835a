// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>
#include <string>

#include "sidetrack/explain.h"

namespace sidetrack {

// What the kernel's routing says of a destination, as far as a pod's is made of: local addresses, marks that lead to a
// table of `local default dev lo`, connected networks, a default route.
struct Route {
  enum class Kind : std::uint8_t { local, by_mark, onward };
  Kind kind = Kind::onward;
  std::string device;                // lo if it stays here
  const PolicyRule* rule = nullptr;  // by_mark: the one that led there
  [[nodiscard]] bool stays() const { return kind != Kind::onward; }
};

// Nothing: no route. `bound` is the interface that the socket is bound to, or empty.
[[nodiscard]] std::optional<Route> route(const PodView& pod, const Address& destination, std::uint32_t mark,
                                         const std::string& bound);

// The source address that the kernel chooses for a packet to `destination` that takes `route`.
[[nodiscard]] std::optional<Address> source_for(const PodView& pod, const Route& route, const Address& destination);

// The address that REDIRECT in PREROUTING turns the destination into: of what came in by `interface`. Nothing: it has
// none of that family, and the packet is dropped (net/netfilter/nf_nat_redirect.c).
[[nodiscard]] std::optional<Address> redirect_address(const PodView& pod, const std::string& interface,
                                                      const Address& destination);

[[nodiscard]] bool is_local(const PodView& pod, const Address& address);

// The pod's own address of a family: the first one that is no loopback or link-local address, and its interface.
struct OwnAddress {
  Address address;
  std::string interface;
};
[[nodiscard]] std::optional<OwnAddress> own_address(const PodView& pod, Families families);
// The interface, other than lo, that has the address.
[[nodiscard]] std::optional<std::string> interface_of(const PodView& pod, const Address& address);

}  // namespace sidetrack
