// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <string_view>

namespace sidetrack {

// IANA's numbers. Plans use these; rules that are read may hold any other number, which has no name here.
enum class Protocol : std::uint8_t { icmp = 1, tcp = 6, udp = 17, icmpv6 = 58 };
[[nodiscard]] constexpr std::string_view name(Protocol protocol) {  // as iptables writes it
  switch (protocol) {
    case Protocol::icmp:
      return "icmp";
    case Protocol::tcp:
      return "tcp";
    case Protocol::udp:
      return "udp";
    case Protocol::icmpv6:
      return "ipv6-icmp";
  }
  return "";
}
[[nodiscard]] constexpr bool has_ports(Protocol protocol) {
  return protocol == Protocol::tcp || protocol == Protocol::udp;
}

enum class End : std::uint8_t { source, destination };

}  // namespace sidetrack
