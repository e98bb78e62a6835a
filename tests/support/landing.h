// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "support/endpoint.h"

namespace sidetrack::netns {

// Who took a connection or a datagram, or why none did.
enum class Role : std::uint8_t {
  proxy_outbound,  // the proxy's port for what leaves the pod, 15001
  proxy_inbound,   // the proxy's port for what enters the pod, 15006
  tunnel,          // the proxy's HBONE port, 15008
  dns,             // the proxy's DNS port, 15053
  app,             // the application in the pod
  outside,         // a host outside of the pod
  guest,           // what hangs on the pod's second interface
  refused,         // no process listens there
  no_answer,       // nothing came back before the guard time ran out
};
[[nodiscard]] std::string_view name(Role role);

// Where a connection or a datagram landed, and what the one who took it saw as its destination.
struct Landing {
  Role role = Role::no_answer;
  std::optional<Endpoint> original;  // SO_ORIGINAL_DST, if it is not the socket's own address: a redirected connection
  std::optional<Endpoint> local;     // else the socket's own address: untouched, or by TPROXY
  std::string oddity;                // what must never be: the client's address changed, the answer from elsewhere

  // What the one who took it answers, and the way back.
  [[nodiscard]] std::string line() const;
  static Landing parse(const std::string& line);

  friend bool operator==(const Landing&, const Landing&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Landing& landing);
};

// What a test expects: landed(Role::proxy_outbound, original("10.96.0.10:80")), landed(Role::refused).
struct Original : Endpoint {};
struct Local : Endpoint {};
inline Original original(const Endpoint& endpoint) { return {endpoint}; }
inline Local local(const Endpoint& endpoint) { return {endpoint}; }

inline Landing landed(Role role) { return {.role = role, .original = {}, .local = {}, .oddity = {}}; }
inline Landing landed(Role role, const Original& end) {
  return {.role = role, .original = end, .local = {}, .oddity = {}};
}
inline Landing landed(Role role, const Local& end) {
  return {.role = role, .original = {}, .local = end, .oddity = {}};
}

}  // namespace sidetrack::netns
