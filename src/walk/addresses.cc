// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk/addresses.h"

#include <algorithm>
#include <iterator>

#include "pod/local_ranges.h"
#include "walk/observer.h"

namespace sidetrack {
bool contains(const AddressRange& range, const Address& address, Observer* observer) {
  if (observer != nullptr && range.family() == address.family) observer->address(address, {&range, 1});
  return range.contains(address);
}

bool contains(const std::vector<AddressRange>& ranges, const Address& address, Observer* observer) {
  if (observer != nullptr) observer->address(address, ranges);
  return std::ranges::any_of(ranges, [&](const AddressRange& range) { return range.contains(address); });
}

bool keeps_address(const Translation& made, Observer* observer) {
  const Origin origin = made.before.address_origin;
  if (origin != Origin::constant && origin == made.after.address_origin) return true;  // of any packet
  return contains(AddressRange::single(made.after.address), made.before.address, observer);
}

bool is_loopback(const Address& address, Observer* observer) {
  static const AddressRange ranges[] = {*AddressRange::parse("127.0.0.0/8"), *AddressRange::parse("::1/128")};
  return contains(ranges[address.family == Family::ipv4 ? 0 : 1], address, observer);
}

bool is_any(const Address& address, Observer* observer) {
  return contains(AddressRange::single(Address::any(address.family)), address, observer);
}

bool is_link_local(const Address& address, Observer* observer) {
  static const AddressRange ranges[] = {*AddressRange::parse("169.254.0.0/16"), *AddressRange::parse("fe80::/10")};
  return contains(ranges[address.family == Family::ipv4 ? 0 : 1], address, observer);
}

bool is_multicast(const Address& address, Observer* observer) {
  static const AddressRange ranges[] = {*AddressRange::parse("224.0.0.0/4"), *AddressRange::parse("ff00::/8")};
  return contains(ranges[address.family == Family::ipv4 ? 0 : 1], address, observer);
}

bool is_broadcast(const PodView& pod, const Address& address, Observer* observer) {
  if (address.family != Family::ipv4) return false;
  std::vector<AddressRange> all{AddressRange::single(AddressRange::prefix(Address::any(Family::ipv4), 0).last)};
  for (const Interface& interface : pod.interfaces) {
    std::ranges::copy(broadcast_ranges(interface, pod.first_is_broadcast), std::back_inserter(all));
  }
  return contains(all, address, observer);
}

bool is_own(const PodView& pod, const Address& address, Observer* observer) {
  return contains(own_ranges(pod.interfaces, address.family), address, observer);
}

bool is_own_of(const PodView& pod, const std::string& interface, const Address& address, Observer* observer) {
  const Interface* found = pod.interface(interface);
  return found != nullptr && contains(own_ranges({found, 1}, address.family), address, observer);
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

std::optional<std::string> interface_of(const PodView& pod, const Address& address, Observer* observer) {
  for (const Interface& interface : pod.interfaces) {
    if (interface.name == "lo") continue;
    for (const InterfaceAddress& own : interface.addresses) {
      if (contains(AddressRange::single(own.address), address, observer)) return interface.name;
    }
  }
  return {};
}

}  // namespace sidetrack
