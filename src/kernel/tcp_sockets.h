// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/packet.h"

namespace sidetrack {

namespace netlink {
class Socket;
}

// A TCP socket of a network namespace, as `ss` lists it. An IPv4 connection of an IPv6 socket has IPv4 addresses.
struct TcpSocket {
  Endpoint local;           // of one that listens: the address that it is bound to, 0.0.0.0 or :: for all
  Endpoint remote;          // of one that listens: of port 0
  std::uint32_t uid = 0;    // of who made it, as the user namespace has it in which TcpSockets was made
  std::uint32_t inode = 0;  // /proc/PID/fd/N -> socket:[INODE]; 0: no process holds it
  bool ipv6_only = false;   // IPV6_V6ONLY, of one that listens: at ::, it takes no connections of IPv4
};

// Those of the network namespace of the thread that makes this object, asked by netlink (sock_diag(7)): the kernel
// looks only at sockets of the state that is asked for, which /proc/net/tcp cannot, and nobody notices, as one would
// that is connected to. Needs no right; once it is made, no other system call than a netlink socket's.
class TcpSockets {
 public:
  TcpSockets();  // throws kernel_lacks without tcp_diag
  ~TcpSockets();
  TcpSockets(const TcpSockets&) = delete;
  TcpSockets& operator=(const TcpSockets&) = delete;

  [[nodiscard]] std::vector<TcpSocket> listening(std::uint16_t port);  // at any address; port 0: at any port
  [[nodiscard]] std::vector<TcpSocket> established();

 private:
  [[nodiscard]] std::vector<TcpSocket> list(std::uint32_t states, std::uint16_t port);
  std::unique_ptr<netlink::Socket> socket_;
};

}  // namespace sidetrack
