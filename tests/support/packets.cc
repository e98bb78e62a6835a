// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/packets.h"

#include "support/amount.h"
#include "support/backends.h"

namespace sidetrack::netns {
namespace {

constexpr unsigned usual_seed = 20260801;

const std::vector<std::uint16_t> tcp_ports_outside{53, 80, 443, 8080, 9443, 15008, 9};
const std::vector<std::uint16_t> udp_ports_outside{53, 80, 443, 9};
const std::vector<std::uint16_t> tcp_ports_here{80, 8080, 8081, 15001, 15006, 15008, 15020, 15021, 15053, 15090, 53, 9};
const std::vector<std::uint16_t> udp_ports_here{5000, 15053, 53, 9};

Place place_of(const Address& address) {
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    const Addresses& a = addresses(family);
    for (const auto outside : {a.client, a.service, a.other_service, a.excluded, a.dns, a.other_dns}) {
      if (*Address::parse(outside) == address) return Place::outside;
    }
    if (*Address::parse(a.guest) == address) return Place::guest;
  }
  return Place::pod;
}

}  // namespace

unsigned seed() { return amount("SIDETRACK_SEED", usual_seed); }

Probe random_probe(Dice& dice, bool has_ipv6_source) {
  const Family family = dice.percent(50) ? Family::ipv4 : Family::ipv6;
  const bool ipv4 = family == Family::ipv4;
  const Addresses& a = addresses(family);
  using Names = std::vector<std::string_view>;
  Probe probe;
  Packet& packet = probe.packet;
  packet.protocol = probe.request.protocol = dice.percent(70) ? Protocol::tcp : Protocol::udp;
  const bool tcp = packet.protocol == Protocol::tcp;
  std::string_view to;
  bool here = true;  // a port of the pod

  if (dice.percent(35)) {  // comes in
    const bool from_net1 = dice.percent(40);
    probe.actor = from_net1 ? from_guest : from_outside;
    packet.direction = Direction::in;
    packet.interface = from_net1 ? "net1" : "eth0";
    packet.source = *Address::parse(from_net1 ? a.guest : a.client);
    to = dice.one_of(from_net1 ? Names{a.pod_second, a.pod, a.service, a.excluded, a.dns} : Names{a.pod, a.pod_second});
    here = to == a.pod || to == a.pod_second;
  } else {
    static const std::vector<Identity> identities{{1000, 1000}, {1337, 1337}, {1337, 1000}, {2000, 1337},
                                                  {3000, 3000}, {1000, 888},  {1337, 3000}, {0, 0}};
    probe.actor = {Place::pod, dice.one_of(identities)};
    packet.owner = Owner{probe.actor.identity.uid, probe.actor.identity.gid};
    here = dice.percent(45);
    packet.direction = here ? Direction::lo : Direction::out;
    Names own{a.any_loopback, a.pod, a.pod_second};
    if (ipv4) own.insert(own.end(), {"127.4.4.4", "127.1.2.3"});
    to = dice.one_of(here ? own : Names{a.service, a.other_service, a.excluded, a.dns, a.other_dns, a.client, a.guest});
    // The source that the proxy keeps for inbound connections.
    if (here && tcp && (ipv4 || has_ipv6_source) && dice.percent(20)) {
      probe.request.from = Endpoint(ipv4 ? "127.0.0.6" : "::6", 0);
      packet.source = probe.request.from->address;
    }
  }
  const auto& ports = here ? (tcp ? tcp_ports_here : udp_ports_here) : (tcp ? tcp_ports_outside : udp_ports_outside);
  probe.request.to = Endpoint(to, dice.one_of(ports));
  packet.destination = probe.request.to.address;
  packet.destination_port = probe.request.to.port;
  return probe;
}

Landing predicted(const Outcome& outcome, Protocol protocol, const Pod& pod) {
  if (outcome.answers != Outcome::Answers::arrive) return landed(Role::no_answer);
  const Endpoint at(outcome.at.address.text(), outcome.at.port.value_or(0));
  switch (outcome.kind) {
    case Outcome::Kind::lands: {
      const Role role = pod.listener(Place::pod, protocol, outcome.transparent ? outcome.transparent_port : at.port);
      if (role == Role::refused) return landed(role);
      const bool translated = outcome.original && *outcome.original != outcome.at;
      if (!translated || protocol == Protocol::udp) return landed(role, local(at));
      return landed(role, original(Endpoint(outcome.original->address.text(), outcome.original->port.value_or(0))));
    }
    case Outcome::Kind::leaves:
    case Outcome::Kind::forwarded: {
      const Role role = pod.listener(place_of(at.address), protocol, at.port);
      return role == Role::refused ? landed(role) : landed(role, local(at));
    }
    case Outcome::Kind::dropped:
    case Outcome::Kind::unroutable:
    case Outcome::Kind::unknown:
      break;
  }
  return landed(Role::no_answer);
}

std::vector<Live> read_all() {
  std::vector<Live> all;
  for (const auto& backend : {open_nftables, open_iptables_nft}) all.push_back(backend()->read());
  all.push_back(open_iptables_legacy({})->read());
  return all;
}

}  // namespace sidetrack::netns
