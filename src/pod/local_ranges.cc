// SPDX-License-Identifier: GPL-2.0-or-later
#include "pod/local_ranges.h"

#include <algorithm>

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

bool is_to_part(const Route& route, const AddressRange& of) {
  return of.prefix_length() < route.to.prefix_length() && of.contains(route.to.first);
}

std::vector<const Route*> main_routes_within_local(const PodView& pod) {
  std::vector<const Route*> found;
  const std::vector<AddressRange> own = own_ranges(pod.interfaces, Family::ipv4);
  for (const Route& route : pod.routes) {
    if (route.table != main_table || route.family() != Family::ipv4 || route.to.prefix_length() == 0) continue;
    const bool is_of_others = std::ranges::any_of(
        pod.routes, [&](const Route& local) { return local.table == local_table && is_to_part(route, local.to); });
    const bool is_own = std::ranges::any_of(own, [&](const AddressRange& one) { return is_to_part(route, one); });
    if (is_of_others || is_own) found.push_back(&route);
  }
  return found;
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
