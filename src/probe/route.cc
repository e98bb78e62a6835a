// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/route.h"

#include <net/if.h>

#include "backend/routes/rtnetlink.h"
#include "host/descriptor.h"
#include "probe/listeners.h"

namespace sidetrack::probe {
namespace {

// The one that has the address. An IPv4 interface has a whole subnet of loopback addresses.
std::string interface_with(const Address& address) {
  if (address.is_loopback()) return "lo";
  netlink::Socket socket = routes::open_socket();
  for (const routes::LiveAddress& live : routes::list_addresses(socket)) {
    char name[IF_NAMESIZE];
    if (live.address == address && if_indextoname(live.device, name) != nullptr) return name;
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
