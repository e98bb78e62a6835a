// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <algorithm>

#include "walk/addresses.h"
#include "walk/frames.h"
#include "walk/packet_walk.h"

namespace sidetrack {
namespace {

std::vector<Address> own_addresses(const Interface& interface) {
  std::vector<Address> own;
  for (const InterfaceAddress& each : interface.addresses) {
    if (each.address.family == Family::ipv6) own.push_back(each.address);
  }
  return own;
}

// A link-local address, and one of each prefix that is on the link.
std::vector<Address> possible_neighbours(const PodView& pod, const Interface& interface,
                                         const std::vector<Address>& own) {
  std::vector<Address> result{*Address::parse("fe80::1")};
  const auto is_among = [](const std::vector<Address>& all, const Address& one) {
    return std::ranges::find(all, one) != all.end();
  };
  const auto add = [&](const AddressRange& prefix) {
    Address one = prefix.first;
    if (one != prefix.last) increment(one.bytes);  // the first one is that of any router (RFC 4291, 2.6.1)
    while (is_among(own, one) && one != prefix.last) increment(one.bytes);
    if (!one.is_link_local() && !is_among(own, one) && !is_among(result, one)) result.push_back(one);
  };
  for (const InterfaceAddress& each : interface.addresses) {
    if (each.address.family == Family::ipv6) add(AddressRange::prefix(each.address, each.prefix_length));
  }
  for (const Route& each : pod.routes) {
    const bool is_on_link = each.kind == Route::Kind::unicast && !each.gateway && each.has_hop_by(interface.name);
    const Address& first = each.to.first;
    const bool is_usual = first != Address::any(Family::ipv6) && !first.is_loopback() && !is_multicast(first, nullptr);
    if (each.family() == Family::ipv6 && is_on_link && is_usual) add(each.to);
  }
  return result;
}

// The group in which who has the address is asked for (RFC 4291, 2.7.1).
Address solicited_node(const Address& of) {
  Address group = *Address::parse("ff02::1:ff00:0");
  std::copy(of.bytes.end() - 3, of.bytes.end(), group.bytes.end() - 3);
  return group;
}

// Solicitations and advertisements, both ways. The kernel solicits from the source of the packet that waits, if that is
// the interface's own address (ndisc_solicit); who is solicited answers from the address that was asked for.
struct DiscoveryPacket {
  std::uint8_t type;
  Packet packet{};
};
std::vector<DiscoveryPacket> packets_of_discovery(const PodView& pod, const Interface& interface) {
  constexpr std::uint8_t solicitation = 135, advertisement = 136;
  std::vector<DiscoveryPacket> result;
  const std::vector<Address> own = own_addresses(interface);
  const auto add = [&](std::uint8_t type, Direction direction, const Address& from, const Address& to) {
    Packet& packet = result.emplace_back(DiscoveryPacket{type}).packet;
    packet.direction = direction;
    packet.protocol = Protocol::icmpv6;
    packet.source = from;
    packet.destination = to;
    packet.interface = interface.name;
  };
  for (const Address& neighbour : possible_neighbours(pod, interface, own)) {
    for (const Address& each : own) {
      add(solicitation, Direction::out, each, solicited_node(neighbour));
      add(advertisement, Direction::in, neighbour, each);
      add(solicitation, Direction::in, neighbour, solicited_node(each));
      add(advertisement, Direction::out, each, neighbour);
    }
  }
  return result;
}

}  // namespace

void PacketWalk::look_for_neighbour() {
  if (!packet_.trace.outcome.arrives()) return;
  const bool goes_on = packet_.trace.outcome.kind != Outcome::Kind::lands;
  const std::string device = goes_on ? packet_.trace.outcome.interface : asked_.interface;
  if (device.empty() || device == "lo" || (!goes_on && asked_.direction != Direction::in)) return;
  const std::string& reason = why_no_neighbour(pod_, rules_, device);
  if (reason.empty()) return;
  Fork fork{"a neighbour may not be found: " + reason,
            fmt::format("whether a neighbour at {} is found: {}", device, reason),
            {"if it is not", "if it is"},
            packet_.trace.steps.size()};
  const auto found = context_.forks.choose(std::move(fork), {{&pod_, this}, packet_});
  packet_.seen = !found;
  if (found == 0U) packet_.drop("no neighbour is found");
}

std::string outcome_of_discovery(const PodView& pod, FamilyRules& rules, const std::string& device) {
  const Interface* found = pod.interface(device);
  if (found == nullptr) return {};
  std::size_t paths = 0;
  for (const auto& [type, packet] : packets_of_discovery(pod, *found)) {
    WalkContext context(pod, rules, nullptr);  // of its own: nothing of it is what was asked about
    do {
      if (++paths > FamilyRules::many_paths) return fmt::format("more than {} possible paths", FamilyRules::many_paths);
      PacketWalk walk(packet, context);
      walk.packet_.discovery = type;
      walk.packet_.now.untracked = true;  // as nf_conntrack_icmpv6_error() makes it
      walk.run();
      const Outcome& outcome = walk.trace().outcome;
      const bool may_be_lost = outcome.kind == Outcome::Kind::dropped || outcome.kind == Outcome::Kind::unknown;
      if (!walk.seen() && may_be_lost) return sentence(outcome);
    } while (context.forks.next());
  }
  return {};
}

const std::string& why_no_neighbour(const PodView& pod, FamilyRules& rules, const std::string& device) {
  const auto [known, added] = rules.why_no_neighbour().try_emplace(device);
  if (added) {
    known->second =
        rules.family() == Family::ipv4 ? rules_of_arp(rules.live(), device) : outcome_of_discovery(pod, rules, device);
  }
  return known->second;
}

}  // namespace sidetrack
