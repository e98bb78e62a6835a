// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/route.h"

#include <ifaddrs.h>

#include <memory>

#include "host/descriptor.h"
#include "probe/listeners.h"

namespace sidetrack::probe {
namespace {

// The one that has the address. An IPv4 interface has a whole subnet of loopback addresses.
std::string interface_with(const Address& address) {
  if (address.is_loopback()) return "lo";
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, freeifaddrs);
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != domain(address.family)) continue;
    if (SocketAddress(entry->ifa_addr).endpoint().address == address) return entry->ifa_name;
  }
  return {};
}

}  // namespace

Route route_to(const Endpoint& to) {
  // To connect a datagram socket is to look up the route, and sends nothing.
  const Descriptor socket = open_socket(Protocol::udp, to.address.family);
  const SocketAddress address(to);
  if (connect(socket.get(), address.get(), SocketAddress::size()) != 0) return {{}, Address::any(to.address.family)};
  const Address source = own_end(socket.get()).address;
  return {is_own(to.address) ? "lo" : interface_with(source), source};
}

bool is_own(const Address& address) {
  const Descriptor socket = open_socket(Protocol::udp, address.family);
  const SocketAddress any_port(Endpoint{address, 0});
  return bind(socket.get(), any_port.get(), SocketAddress::size()) == 0;
}

}  // namespace sidetrack::probe
