// SPDX-License-Identifier: GPL-2.0-or-later
// What kind of address it is, and whose. The observer is told what was asked of the address.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/address.h"
#include "pod/pod_view.h"

namespace sidetrack {

class Observer;
struct Translation;

[[nodiscard]] bool contains(const AddressRange& range, const Address& address, Observer* observer);
[[nodiscard]] bool contains(const std::vector<AddressRange>& ranges, const Address& address, Observer* observer);

// Tells whether it leaves the address as it was.
[[nodiscard]] bool keeps_address(const Translation& made, Observer* observer);

[[nodiscard]] bool is_loopback(const Address& address, Observer* observer);
[[nodiscard]] bool is_any(const Address& address, Observer* observer);
[[nodiscard]] bool is_link_local(const Address& address, Observer* observer);
[[nodiscard]] bool is_multicast(const Address& address, Observer* observer);
// 255.255.255.255, or the first or last address of a network of this pod (the first one until kernel 5.14).
[[nodiscard]] bool is_broadcast(const PodView& pod, const Address& address, Observer* observer);

// Whether it is an address of the pod, or of that interface.
[[nodiscard]] bool is_own(const PodView& pod, const Address& address, Observer* observer);
[[nodiscard]] bool is_own_of(const PodView& pod, const std::string& interface, const Address& address,
                             Observer* observer = nullptr);

// The pod's own address of a family: the first one that is no loopback or link-local address, and its interface.
struct OwnAddress {
  Address address;
  std::string interface;
};
[[nodiscard]] std::optional<OwnAddress> own_address(const PodView& pod, Families families);
// The interface, other than lo, that has the address.
[[nodiscard]] std::optional<std::string> interface_of(const PodView& pod, const Address& address,
                                                      Observer* observer = nullptr);

}  // namespace sidetrack
