// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "rule/ruleset.h"
#include "support/file_descriptor.h"
#include "support/landing.h"
#include "support/namespace.h"

namespace sidetrack::netns {

struct Request {
  Endpoint to;
  Protocol protocol = Protocol::tcp;
  std::optional<Endpoint> from;    // bind to this first
  bool transparent = false;        // `from` is a foreign address: IP_TRANSPARENT, which needs NET_ADMIN
  std::optional<unsigned> mark{};  // SO_MARK
  std::string interface {};        // SO_BINDTODEVICE
  std::chrono::milliseconds patience = std::chrono::seconds(5);  // after that there is no answer
};

// One connection (or one udp socket) to the process that takes it.
class Connection {
 public:
  Connection(const Namespace& where, Identity identity, const Request& request);

  // Asks who is at the other end, by a packet there and one back.
  Landing ask();

 private:
  Landing ask_tcp();
  Landing ask_udp();

  Request request_;
  FileDescriptor socket_;
  std::optional<Role> nobody_;  // refused or no_answer
};

// Connects, asks twice (the first packet of a connection and the later ones take different ways), closes.
Landing connect(const Namespace& where, Identity identity, const Request& request);

}  // namespace sidetrack::netns
