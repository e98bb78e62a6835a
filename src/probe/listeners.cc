// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/listeners.h"

#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6/ip6_tables.h>

#include <algorithm>
#include <cerrno>

namespace sidetrack::probe {
namespace {

// A bound socket; else errno says why there is none.
Descriptor bound(Protocol protocol, const Binding& binding, bool shared) {
  const Family family = binding.at.address.family;
  const bool tcp = protocol == Protocol::tcp;
  Descriptor fd = open_socket(protocol, family);
  if (!fd.valid()) return fd;
  const bool v6 = family == Family::ipv6;
  const SocketAddress address(binding.at);
  const bool done =
      // For tcp alone: leftovers of ended connections do not count. For udp it would take the port from its holder.
      (!tcp || set(fd, SOL_SOCKET, SO_REUSEADDR, 1)) && (!shared || set(fd, SOL_SOCKET, SO_REUSEPORT, 1)) &&
      (!v6 || set(fd, SOL_IPV6, IPV6_V6ONLY, 1)) &&
      (!binding.transparent || set(fd, v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_TRANSPARENT : IP_TRANSPARENT, 1)) &&
      bind(fd.get(), address.get(), SocketAddress::size()) == 0;
  return done ? std::move(fd) : Descriptor();
}

}  // namespace

Listener listen_at(Protocol protocol, const Binding& binding, Sharing sharing) {
  Listener listener{protocol, binding.at.port.value_or(0), Listener::State::refused, 0, Descriptor()};
  const auto failed = [&]() -> Listener&& {
    listener.error = errno;
    listener.state = errno == EADDRINUSE ? Listener::State::held : Listener::State::refused;
    listener.socket = Descriptor();
    return std::move(listener);
  };
  // Without SO_REUSEPORT a port cannot be had where any process listens, not even for the same uid.
  if (sharing == Sharing::if_free && !bound(protocol, binding, false).valid()) return failed();
  listener.socket = bound(protocol, binding, true);
  if (!listener.socket.valid()) return failed();
  if (protocol == Protocol::tcp && listen(listener.socket.get(), SOMAXCONN) != 0) return failed();
  listener.state = Listener::State::ours;
  return listener;
}

bool any_held(const std::vector<Listener>& listeners, Protocol protocol) {
  return std::ranges::any_of(listeners, [&](const Listener& listener) {
    return listener.protocol == protocol && listener.state == Listener::State::held;
  });
}

std::optional<Endpoint> original_destination(int connection, Family family) {
  SocketAddress address;
  socklen_t size = SocketAddress::size();
  const int done = family == Family::ipv4
                       ? getsockopt(connection, SOL_IP, SO_ORIGINAL_DST, address.get(), &size)
                       : getsockopt(connection, SOL_IPV6, IP6T_SO_ORIGINAL_DST, address.get(), &size);
  if (done != 0) return std::nullopt;
  return address.endpoint();
}

Endpoint own_end(int socket) {
  SocketAddress address;
  socklen_t size = SocketAddress::size();
  getsockname(socket, address.get(), &size);
  return address.endpoint();
}

std::optional<Endpoint> peer_end(int socket) {
  SocketAddress address;
  socklen_t size = SocketAddress::size();
  if (getpeername(socket, address.get(), &size) != 0) return std::nullopt;
  return address.endpoint();
}

}  // namespace sidetrack::probe
