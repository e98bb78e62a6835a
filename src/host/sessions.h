// SPDX-License-Identifier: GPL-2.0-or-later
// The connections by which somebody works here: on a virtual machine, the first rules may cut the administrator off.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernel/tcp_sockets.h"

namespace sidetrack {

// A TCP connection of this network namespace with another host.
struct Session {
  TcpSocket socket;
  bool inbound = true;  // the other host opened it: a socket listens, or has listened, at its own port
  std::string holder;   // "sshd, process 4711"
};

struct Sessions {
  std::vector<Session> list;
  std::vector<std::string> unknown;  // why some may be missing, a sentence each
  // Whether the kernel takes up a connection of which it has not seen the beginning
  // (net.netfilter.nf_conntrack_tcp_loose); else its packets are invalid.
  bool taken_up = true;
  [[nodiscard]] bool empty() const { return list.empty() && unknown.empty(); }
};

// Whether the calling thread's network namespace has a TCP socket: else, as in an init container, there is nothing for
// `find_sessions` to find. Also true where that cannot be seen.
[[nodiscard]] bool may_have_sessions();

// Established connections of the calling thread's network namespace, none of them over loopback addresses,
//   that $SSH_CONNECTION names
//   that a server of ssh holds, as the other host opened them
//   that a process holds which this one descends from
//   at port 22, which the other host opened, if the process that holds them cannot be seen
// Nothing is thrown: what could not be asked is in `unknown`.
[[nodiscard]] Sessions find_sessions(std::string_view ssh_connection);

}  // namespace sidetrack
