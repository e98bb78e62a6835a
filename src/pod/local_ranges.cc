// SPDX-License-Identifier: GPL-2.0-or-later
#include "pod/local_ranges.h"

namespace sidetrack {

std::vector<AddressRange> own_ranges(std::span<const Interface> interfaces, Family family) {
  std::vector<AddressRange> all;
  all.reserve(2 * interfaces.size());  // asked for packets by the thousand
  for (const Interface& interface : interfaces) {
    for (const InterfaceAddress& own : interface.addresses) {
      const bool whole = interface.name == "lo" && family == Family::ipv4 && own.network_is_local;
      if (own.address.family != family || (!own.is_local && !whole)) continue;
      all.push_back(whole ? AddressRange::prefix(own.address, own.prefix_length) : AddressRange::single(own.address));
    }
  }
  return all;
}

std::vector<AddressRange> broadcast_ranges(const Interface& interface, bool first_is_broadcast) {
  std::vector<AddressRange> all;
  for (const InterfaceAddress& own : interface.addresses) {
    if (own.address.family != Family::ipv4 || own.prefix_length > 30) continue;
    const AddressRange network = AddressRange::prefix(own.address, own.prefix_length);
    if (network.last != own.address) all.push_back(AddressRange::single(network.last));
    if (first_is_broadcast && network.first != own.address) all.push_back(AddressRange::single(network.first));
  }
  return all;
}

}  // namespace sidetrack
