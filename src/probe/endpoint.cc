// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/endpoint.h"

#include <cstring>

namespace sidetrack::probe {

SocketAddress::SocketAddress(const Endpoint& endpoint) {
  const Address& address = endpoint.address;
  if (address.family == Family::ipv4) {
    auto& to = reinterpret_cast<sockaddr_in&>(storage_);
    to.sin_family = AF_INET;
    to.sin_port = htons(endpoint.port.value_or(0));
    std::memcpy(&to.sin_addr, address.bytes.data(), sizeof to.sin_addr);
  } else {
    auto& to = reinterpret_cast<sockaddr_in6&>(storage_);
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(endpoint.port.value_or(0));
    std::memcpy(&to.sin6_addr, address.bytes.data(), sizeof to.sin6_addr);
  }
}

Endpoint SocketAddress::endpoint() const {
  Endpoint result;
  if (storage_.ss_family == AF_INET) {
    const auto& from = reinterpret_cast<const sockaddr_in&>(storage_);
    result.port = ntohs(from.sin_port);
    std::memcpy(result.address.bytes.data(), &from.sin_addr, sizeof from.sin_addr);
  } else {
    const auto& from = reinterpret_cast<const sockaddr_in6&>(storage_);
    result.address.family = Family::ipv6;
    result.port = ntohs(from.sin6_port);
    std::memcpy(result.address.bytes.data(), &from.sin6_addr, sizeof from.sin6_addr);
  }
  return result;
}

Descriptor open_socket(Protocol protocol, Family family) {
  const int type = protocol == Protocol::tcp ? SOCK_STREAM : SOCK_DGRAM;
  return Descriptor(socket(domain(family), type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace sidetrack::probe
