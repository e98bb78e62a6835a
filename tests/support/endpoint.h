// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <netinet/in.h>  // here, because it must come before any header of linux/
#include <sys/socket.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include "model/address.h"

namespace sidetrack::netns {

// An address and a port (host byte order): "10.96.0.10:80", "[fd00:96::10]:80".
struct Endpoint {
  Address address;
  std::uint16_t port = 0;

  Endpoint() = default;
  Endpoint(std::string_view address_text, std::uint16_t port_number);  // throws if the address is none
  Endpoint(std::string_view text);                                     // NOLINT: as it is read, so it is written
  Endpoint(const char* text) : Endpoint(std::string_view(text)) {}     // NOLINT
  explicit Endpoint(const sockaddr_storage& socket_address);

  [[nodiscard]] std::string text() const;
  [[nodiscard]] int domain() const { return address.family == Family::ipv4 ? AF_INET : AF_INET6; }
  [[nodiscard]] sockaddr_storage socket_address() const;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Endpoint& endpoint) { return out << endpoint.text(); }
};

// What the system calls want beside a sockaddr_storage.
constexpr socklen_t socket_address_size = sizeof(sockaddr_storage);
inline const sockaddr* pointer(const sockaddr_storage& address) { return reinterpret_cast<const sockaddr*>(&address); }
inline sockaddr* pointer(sockaddr_storage& address) { return reinterpret_cast<sockaddr*>(&address); }

[[nodiscard]] Endpoint local_end(int socket);
[[nodiscard]] Endpoint remote_end(int socket);

}  // namespace sidetrack::netns
