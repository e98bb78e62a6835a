// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <sys/fsuid.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/packet.h"
#include "probe/endpoint.h"
#include "probe/listeners.h"
#include "rule/ruleset.h"

namespace sidetrack::probe {

// Of this thread, for what it opens.
inline Owner own_identity() {
  // An id that does not exist changes nothing; the answer is the one in use.
  return {static_cast<std::uint32_t>(setfsuid(UINT32_MAX)), static_cast<std::uint32_t>(setfsgid(UINT32_MAX))};
}

// Sockets that this thread makes belong to `identity` for as long as this lives. `-m owner` (meta skuid, skgid) and
// the sharing of a port by SO_REUSEPORT look at the file system ids that a socket was made with, and at nothing else;
// these ids are the thread's own, and can be given back.
class ActingAs {
 public:
  explicit ActingAs(const Owner& identity) : before_(own_identity()) {
    setfsgid(identity.gid);
    setfsuid(identity.uid);
    done_ = own_identity() == identity;
  }
  ActingAs(const ActingAs&) = delete;
  ActingAs& operator=(const ActingAs&) = delete;
  ~ActingAs() {
    setfsuid(before_.uid);
    setfsgid(before_.gid);
  }

  // False without CAP_SETUID and CAP_SETGID, or if the user namespace does not have these ids.
  [[nodiscard]] bool done() const { return done_; }

 private:
  Owner before_;
  bool done_ = false;
};

// The ports that attempts have been made from, each from one of its own: what an earlier attempt or another connection
// has left in the table of sockets would be taken for what became of a later one from the same port.
using SourcePorts = std::set<std::uint16_t>;

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
