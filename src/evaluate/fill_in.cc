// SPDX-License-Identifier: GPL-2.0-or-later
#include "evaluate/fill_in.h"

#include <fmt/format.h>

#include <algorithm>

#include "evaluate/observer.h"
#include "evaluate/route.h"
#include "evaluate/source_address.h"
#include "model/error.h"
#include "model/printable.h"

namespace sidetrack {
namespace {

// The interface by which a packet from outside comes in: that of its destination, else the one of the default route.
std::string entrance(const PodView& pod, const Address& destination) {
  if (const auto name = interface_of(pod, destination)) return *name;
  const AddressRange anywhere = AddressRange::prefix(Address::any(destination.family), 0);
  const auto found = std::ranges::find_if(pod.routes, [&](const NetworkRoute& route) {
    return route.to == anywhere && route.table == main_table && route.kind == NetworkRoute::Kind::unicast;
  });
  return found != pod.routes.end() ? found->device : pod.interfaces.back().name;
}

}  // namespace

Packet filled_in(Packet packet, const PodView& pod, Observer* observer) {
  const auto refuse = [](const std::string& what, const std::string& hint) {
    throw Error(ExitCode::usage, what, hint);
  };
  if (!packet.destination) {
    const Families families = packet.source ? Families(packet.source->family) : Families::both();
    if (packet.direction == Direction::lo) {
      packet.destination = Address::loopback(families.contains(Family::ipv4) ? Family::ipv4 : Family::ipv6);
    } else if (const auto own = own_address(pod, families)) {
      packet.destination = own->address;
    } else {
      refuse(fmt::format("this pod has no {}address that the packet could be for",
                         packet.source ? fmt::format("{} ", name(packet.source->family)) : ""),
             "give the destination's address");
    }
  }
  // No address: the kernel connects to the loopback address, or to the one that the socket is bound to
  // (ip_route_output_key_hash_rcu, tcp_v6_connect).
  const bool to_any = is_any(*packet.destination, observer);
  if (packet.direction != Direction::in && to_any) {
    const bool to_itself = packet.destination->family == Family::ipv4 && packet.source;
    packet.destination = to_itself ? *packet.source : Address::loopback(packet.destination->family);
  }
  const Address& destination = *packet.destination;
  if (packet.protocol == Protocol::icmp && destination.family == Family::ipv6) packet.protocol = Protocol::icmpv6;
  if (packet.direction == Direction::lo && !is_local(pod, destination, observer)) {
    refuse(fmt::format("{} is not an address of this pod: expected one of its own for 'lo'", destination.text()),
           "what goes to another host is 'out'");
  }
  if (packet.direction == Direction::in) {
    if (packet.interface.empty()) packet.interface = entrance(pod, destination);
    if (packet.interface == "lo") refuse("--in-interface 'lo': nothing comes in by lo from outside", "use 'lo'");
  }
  if (!packet.interface.empty() && pod.interface(packet.interface) == nullptr) {
    std::string names;
    for (const Interface& interface : pod.interfaces) names += (names.empty() ? "" : ", ") + printable(interface.name);
    refuse(fmt::format("--{}-interface '{}': this pod has no such interface, it has {}",
                       packet.direction == Direction::in ? "in" : "out", packet.interface, names),
           "give one of them, or leave it out");
  }
  if (!packet.source && packet.direction == Direction::in) {  // addresses for documentation stand for any host outside
    packet.source = Address::parse(destination.family == Family::ipv4 ? "203.0.113.1" : "2001:db8:ffff::1");
  }
  if (observer != nullptr) observer->source();
  if (!packet.source) {
    const Route way = route(pod, {destination, {}, packet.mark, "lo", packet.interface, observer});
    if (way.exists()) packet.source = source_for(pod, way, destination, observer);
  }
  if (!packet.source) packet.source = Address::any(destination.family);
  return packet;
}

}  // namespace sidetrack
