// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <algorithm>

#include "walk/frames.h"
#include "walk/packet_walk.h"

namespace sidetrack {

void PacketWalk::look_for_neighbour() {
  const Outcome::Kind kind = packet_.trace.outcome.kind;
  const bool goes_on = kind == Outcome::Kind::leaves || kind == Outcome::Kind::forwarded;
  if (!goes_on && kind != Outcome::Kind::lands) return;
  const std::string device = goes_on ? packet_.trace.outcome.interface : asked_.interface;
  if (device.empty() || device == "lo" || (!goes_on && asked_.direction != Direction::in)) return;
  const std::string reason = packet_.family == Family::ipv4 ? rules_of_arp(rules_.live()) : discovery(device);
  if (reason.empty()) return;
  Fork fork{"a neighbour may not be found: " + reason,
            fmt::format("whether a neighbour at {} is found: {}", device, reason),
            {"if it is not", "if it is"},
            packet_.trace.steps.size()};
  const auto found = context_.forks.choose(std::move(fork), {{&pod_, this}, packet_});
  packet_.seen = !found;
  if (found == 0U) packet_.drop("no neighbour is found");
}

const std::string& PacketWalk::discovery(const std::string& device) {
  const auto [known, added] = rules_.discovery().try_emplace(device);
  if (added) known->second = outcome_of_discovery(device);
  return known->second;
}

std::string PacketWalk::outcome_of_discovery(const std::string& device) {
  const Interface* found = pod_.interface(device);
  if (found == nullptr) return {};
  const auto own =
      std::ranges::find(found->addresses, Family::ipv6, [](const InterfaceAddress& one) { return one.address.family; });
  if (own == found->addresses.end()) return {};
  Packet sent;
  sent.direction = Direction::out;
  sent.protocol = Protocol::icmpv6;
  sent.source = own->address;
  sent.destination = Address::parse("ff02::1:ff00:1");
  sent.interface = device;
  Packet received = sent;
  received.direction = Direction::in;
  received.source = Address::parse("fe80::1");
  received.destination = own->address;
  for (const Packet& packet : {sent, received}) {
    WalkContext context(pod_, rules_, nullptr);  // of its own: nothing of it is what was asked about
    do {
      PacketWalk walk(packet, context);
      walk.discovery_ = true;
      walk.packet_.now.untracked = true;  // as nf_conntrack_icmpv6_error() makes it
      walk.run();
      const Outcome& outcome = walk.trace().outcome;
      const bool may_be_lost = outcome.kind == Outcome::Kind::dropped || outcome.kind == Outcome::Kind::unknown;
      if (!walk.seen() && may_be_lost) return sentence(outcome);
    } while (context.forks.next());
  }
  return {};
}

}  // namespace sidetrack
