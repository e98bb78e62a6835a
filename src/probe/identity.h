// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <sys/fsuid.h>

#include <cstdint>

#include "model/packet.h"

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

}  // namespace sidetrack::probe
