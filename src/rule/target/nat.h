// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "rule/target/kind.h"

namespace sidetrack {

struct Redirect {          // REDIRECT --to-ports
  std::uint16_t port = 0;  // host byte order
  friend bool operator==(const Redirect&, const Redirect&) = default;

  static constexpr bool goes_on = false;
  static constexpr bool needs_tracking = true;
  TARGET_FUNCTIONS;
  [[nodiscard]] Facts changes() const { return facts::none; }
};

struct Nat {  // DNAT, SNAT, MASQUERADE, NETMAP, REDIRECT to several ports; what is not given stays
  End end = End::destination;
  std::optional<AddressRange> addresses;
  std::optional<PortRange> ports;
  std::string words;  // those of iptables
  enum class To : std::uint8_t {
    given,    // one of the addresses
    own,      // REDIRECT, MASQUERADE: an address of the pod
    network,  // NETMAP: the address at the end that the hook translates, moved into the network of `addresses`
  };
  To to = To::given;
  bool random = false;                  // a port among these that is there already does not stay
  std::optional<std::uint16_t> base{};  // the port that the first of `ports` stands for, the next one for the next
  friend bool operator==(const Nat&, const Nat&) = default;

  static constexpr bool goes_on = false;
  static constexpr bool needs_tracking = true;
  TARGET_FUNCTIONS;
  [[nodiscard]] Facts changes() const { return facts::none; }
};

// Returns the translation of a native rule of nf_tables, in the words of iptables. `flags` are those of
// <linux/netfilter/nf_nat.h>; without `addresses`, `to` is own.
[[nodiscard]] Nat native_nat(End end, Nat::To to, std::optional<AddressRange> addresses, std::optional<PortRange> ports,
                             unsigned flags);

// SNAT --to-source ADDRESS
[[nodiscard]] Nat source_nat(const Address& address);

}  // namespace sidetrack
