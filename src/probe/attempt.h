// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "probe/endpoint.h"
#include "probe/identity.h"
#include "probe/listeners.h"
#include "rule/ruleset.h"

namespace sidetrack::probe {

// The ports that attempts are made from, each from one of its own: what an earlier attempt or another connection has
// left in the table of sockets would be taken for what became of a later one from the same port.
class SourcePorts {
 public:
  explicit SourcePorts(std::set<std::uint16_t> used = {}) : used_(std::move(used)) {}

  // False if it has been used before.
  [[nodiscard]] bool take(std::uint16_t port) { return used_.insert(port).second; }

 private:
  std::set<std::uint16_t> used_;
};

using Clock = std::chrono::steady_clock;

// One connection, or one datagram, and whose it is.
struct Attempt {
  Protocol protocol = Protocol::tcp;
  Owner as;
  std::optional<Address> from{};  // bind to this first
  Endpoint to;
  std::uint32_t mark = 0;  // SO_MARK, which needs CAP_NET_ADMIN; 0: none
  // Complete a connection. Otherwise its answer is not taken in: who listens never gets to accept it.
  bool complete = false;
  [[nodiscard]] std::string text() const;  // "uid 1337 to 127.0.0.6:15002"
};

// What became of it.
struct Landing {
  enum class Kind : std::uint8_t {
    taken,     // by a listener of ours, at `at`
    seen,      // at `at`, by the table of sockets; accepted by no process
    answered,  // udp: by a process inside this pod
    refused,   // nothing listens there, or its address is not this pod's
    strayed,   // out of the pod: the next hop said so, or a host outside answered
    unanswered,
    not_sent,
  };
  Kind kind = Kind::unanswered;
  Endpoint at{};
  std::uint16_t listener = 0;          // the port of our listener that it came to; 0: none of ours
  std::optional<Endpoint> original{};  // taken, tcp: SO_ORIGINAL_DST
  int error = 0;                       // errno, where there is one
};

// For attempts that may land there. Where another process listens, the table of sockets tells where they do.
[[nodiscard]] SourcePorts source_ports(const std::vector<Listener>& listeners);

// Makes the attempt, from one port after the other if there is no answer, and waits for its landing until the deadline.
// `listeners` are those of all ports where it might land; connections of others that come in there meanwhile are
// closed.
[[nodiscard]] Landing land(const Attempt& attempt, const std::vector<Listener>& listeners, SourcePorts& ports,
                           Clock::time_point deadline);

}  // namespace sidetrack::probe
