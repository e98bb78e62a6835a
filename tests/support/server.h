// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <thread>
#include <vector>

#include "support/file_descriptor.h"
#include "support/landing.h"
#include "support/namespace.h"

namespace sidetrack::netns {

// Listens on ports of all addresses, IPv4 and IPv6, and answers whatever it is sent with two things in one line: its
// Landing (who it is and which destination it sees), and the client's address as it sees that.
struct Ports {
  std::vector<std::uint16_t> tcp;
  std::vector<std::uint16_t> udp;
  bool transparent = false;  // IP_TRANSPARENT: takes what goes to foreign addresses, as TPROXY delivers it
  unsigned mark = 0;         // SO_MARK, of the accepted sockets, too; 0: none
};

class Server {
 public:
  // Listening when the constructor returns. Its sockets, the accepted ones too, are owned by `identity`.
  Server(const Namespace& where, Identity identity, Role role, const Ports& ports);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

 private:
  FileDescriptor stop_;
  std::thread thread_;
};

}  // namespace sidetrack::netns
