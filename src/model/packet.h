// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/address.h"
#include "model/protocol.h"

namespace sidetrack {

// Where a value that a packet has on its way comes from, noted if all packets are followed at once (see Observer).
enum class Origin : std::uint8_t {
  constant,     // a rule, or the pod
  source,       // the packet's own source,
  destination,  // or destination, as it was asked about
};

struct Endpoint {
  Address address;
  std::optional<std::uint16_t> port;  // host byte order; nothing: none (icmp), or not known
  Origin address_origin = Origin::constant;
  Origin port_origin = Origin::constant;
  [[nodiscard]] std::string text() const;  // "10.96.0.10:443", "[fd00::1]:53", without a port "10.96.0.10"
  friend bool operator==(const Endpoint& a, const Endpoint& b) { return a.address == b.address && a.port == b.port; }
};

enum class Direction : std::uint8_t {
  out,  // sent by a process in the pod
  in,   // comes in by an interface
  lo,   // sent by a process in the pod to the pod itself
};
[[nodiscard]] constexpr std::string_view name(Direction direction) {  // as `explain` takes it
  constexpr std::string_view names[] = {"out", "in", "lo"};
  return names[static_cast<std::size_t>(direction)];
}

enum class ConnectionState : std::uint8_t {
  new_,         // the first packet of a connection: the one that nat decides about
  established,  // a later packet in the same direction
  reply,        // a packet in the other direction
  invalid,      // of no connection that conntrack knows
};

struct Owner {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  friend bool operator==(const Owner&, const Owner&) = default;
};

struct Packet {
  Direction direction = Direction::out;
  Protocol protocol = Protocol::tcp;
  std::optional<Address> destination;             // nothing: in: the pod's address; lo: the loopback address
  std::optional<std::uint16_t> destination_port;  // nothing: icmp has none
  std::optional<Address> source;                  // nothing: the one that the kernel chooses; in: a host outside
  std::optional<std::uint16_t> source_port;       // nothing: one that the kernel chooses, or none
  std::optional<Owner> owner;  // of the socket; nothing: sent by the kernel itself (a reset, an ICMP error), or `in`
  std::optional<std::string> cgroup;      // of the socket: a path as CgroupMatch has it; nothing: not known
  std::string interface;                  // in: it comes by this one; out: it is bound to this one; empty: as routed
  std::uint32_t mark = 0;                 // SO_MARK; host byte order
  std::optional<std::uint32_t> connmark;  // of its connection; nothing: what the rules made of the first packet
  ConnectionState state = ConnectionState::new_;
  // established: its connection began before there were rules, with the socket that has its addresses. Else it began
  // under the same rules.
  bool began_before = false;
  friend bool operator==(const Packet&, const Packet&) = default;
};

// What rules tell packets apart by; in the order in which diagrams of all packets ask (see space/diagram.h): what rules
// ask for together, and most often, is next to each other.
enum class PacketField : std::uint8_t {
  way,  // Direction
  family,
  state,
  protocol,
  interface,  // in: by which it comes; out: to which its socket is bound
  destination,
  destination_port,
  source,
  source_port,
  uid,  // of out and lo
  gid,
  mark,
  cgroup,  // of out and lo
};

}  // namespace sidetrack
