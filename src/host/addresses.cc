// SPDX-License-Identifier: GPL-2.0-or-later
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "sidetrack/error.h"
#include "sidetrack/host.h"

namespace sidetrack {
namespace {

Address address_of(const sockaddr_in& socket_address) {
  Address address{Family::ipv4, {}};
  std::memcpy(address.bytes.data(), &socket_address.sin_addr, sizeof socket_address.sin_addr);
  return address;
}

Address address_of(const sockaddr_in6& socket_address) {
  Address address{Family::ipv6, {}};
  std::memcpy(address.bytes.data(), &socket_address.sin6_addr, sizeof socket_address.sin6_addr);
  return address;
}

}  // namespace

std::vector<Address> interface_addresses() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) throw system_error(errno, "cannot list the addresses of the interfaces");
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, freeifaddrs);

  std::vector<Address> addresses;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    if (entry->ifa_addr->sa_family == AF_INET) {
      addresses.push_back(address_of(*reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)));
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      addresses.push_back(address_of(*reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)));
    }
  }
  return addresses;
}

}  // namespace sidetrack
