// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>
#include <stdexcept>

#include "support/file_descriptor.h"

namespace sidetrack::netns {

Endpoint::Endpoint(std::string_view address_text, std::uint16_t port_number) : port(port_number) {
  const auto parsed = Address::parse(address_text);
  if (!parsed) throw std::invalid_argument("not an address: " + std::string(address_text));
  address = *parsed;
}

Endpoint::Endpoint(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) throw std::invalid_argument("no port: " + std::string(text));
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  *this = Endpoint(host, static_cast<std::uint16_t>(std::stoul(std::string(text.substr(colon + 1)))));
}

Endpoint::Endpoint(const sockaddr_storage& socket_address) {
  if (socket_address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(socket_address);
    address.family = Family::ipv4;
    std::memcpy(address.bytes.data(), &v4.sin_addr, sizeof v4.sin_addr);
    port = ntohs(v4.sin_port);
  } else {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(socket_address);
    address.family = Family::ipv6;
    std::memcpy(address.bytes.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
    port = ntohs(v6.sin6_port);
  }
}

std::string Endpoint::text() const {
  const std::string host = address.family == Family::ipv4 ? address.text() : '[' + address.text() + ']';
  return host + ':' + std::to_string(port);
}

sockaddr_storage Endpoint::socket_address() const {
  sockaddr_storage result{};
  if (address.family == Family::ipv4) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(result);
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&v4.sin_addr, address.bytes.data(), sizeof v4.sin_addr);
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(result);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    std::memcpy(&v6.sin6_addr, address.bytes.data(), sizeof v6.sin6_addr);
  }
  return result;
}

Endpoint local_end(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  check(getsockname(socket, pointer(address), &size), "getsockname");
  return Endpoint(address);
}

Endpoint remote_end(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  check(getpeername(socket, pointer(address), &size), "getpeername");
  return Endpoint(address);
}

}  // namespace sidetrack::netns
