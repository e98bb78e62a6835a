// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "probe/endpoint.h"
#include "rule/ruleset.h"
#include "system/descriptor.h"

namespace sidetrack::probe {

// A port where a probe may land: listened at by us, held by another process, or neither.
struct Listener {
  enum class State : std::uint8_t { ours, held, refused };
  Protocol protocol = Protocol::tcp;
  std::uint16_t port = 0;
  State state = State::refused;
  int error = 0;  // refused: errno
  Descriptor socket;
};

enum class Sharing : std::uint8_t {
  if_free,  // a port that another process listens at is left to it
  always,   // by SO_REUSEPORT, beside others of the same uid
};

struct Binding {
  Endpoint at;
  bool transparent = false;  // takes connections to foreign addresses: IP_TRANSPARENT, which needs CAP_NET_ADMIN
};

// Listens, owned by the identity that this thread is acting as.
[[nodiscard]] Listener listen_at(Protocol protocol, const Binding& binding, Sharing sharing);

// Another process holds one of them: then the rules might lead any connection to it.
[[nodiscard]] bool any_held(const std::vector<Listener>& listeners, Protocol protocol);

// The destination before REDIRECT changed it; nothing where connection tracking does not know the connection.
[[nodiscard]] std::optional<Endpoint> original_destination(int connection, Family family);

[[nodiscard]] Endpoint own_end(int socket);
[[nodiscard]] std::optional<Endpoint> peer_end(int socket);

}  // namespace sidetrack::probe
