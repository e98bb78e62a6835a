// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "model/packet.h"
#include "system/descriptor.h"

namespace sidetrack::probe {

// As the system calls want it.
class SocketAddress {
 public:
  SocketAddress() = default;
  explicit SocketAddress(const Endpoint& endpoint);
  [[nodiscard]] Endpoint endpoint() const;  // IPv4 or IPv6
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  [[nodiscard]] sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage_); }
  [[nodiscard]] static constexpr socklen_t size() { return sizeof(sockaddr_storage); }

 private:
  sockaddr_storage storage_{};
};

// Does not block; else errno says why there is none.
[[nodiscard]] Descriptor open_socket(Protocol protocol, Family family);

// setsockopt(2). False: errno says why not.
template <typename Value>
bool set(const Descriptor& socket, int level, int option, const Value& value) {
  return setsockopt(socket.get(), level, option, &value, sizeof value) == 0;
}

}  // namespace sidetrack::probe
