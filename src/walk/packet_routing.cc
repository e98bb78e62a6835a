// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <algorithm>

#include "walk/addresses.h"
#include "walk/observer.h"
#include "walk/packet_walk.h"

namespace sidetrack {

// A sender that has chosen no source address gets that of the route. IPv4 looks the route up again with it in connect()
// alone (ip_route_connect), IPv6 where there is none without (ip6_dst_lookup_tail).
std::optional<std::string> PacketWalk::first_route() {
  if (packet_.discovery) {  // no route is asked for (ndisc_send_skb)
    way_.kind = RouteLookup::Kind::unicast;
    way_.device = asked_.interface;
    return {};
  }
  if (answers_unbound()) {
    const auto bound = is_bound();
    take_way("lo", asked_.interface, bound.value_or(false));
    return cannot_be_sent();
  }
  const bool ipv4 = packet_.family == Family::ipv4;
  const bool chosen = context_.source_chosen || asked_.state == ConnectionState::reply;
  if (!chosen && ipv4 && observer() != nullptr) observer()->protocol();
  if (chosen || (ipv4 && asked_.protocol == Protocol::tcp)) return route_out();
  take_way("lo", asked_.interface, false);
  if (!ipv4 || look_up("lo", asked_.interface) == way_) return way_.exists() ? cannot_be_sent() : route_out();
  const auto connected = is_connected();
  return connected == true ? route_out() : cannot_be_sent();
}

// Asks what is not known of the socket, where that makes a difference. Returns nothing if another walk has been here.
std::optional<bool> PacketWalk::ask_socket(const char* subject) {
  const auto way = context_.forks.choose({subject, subject, {"if it is not", "if it is"}, packet_.trace.steps.size()},
                                         {{&pod_, subject}, packet_});
  packet_.seen = !way;
  return way ? std::optional(*way == 1) : std::nullopt;
}
std::optional<bool> PacketWalk::is_connected() { return ask_socket("whether its socket is connected"); }
std::optional<bool> PacketWalk::is_bound() { return ask_socket("whether its socket is bound to an address"); }

// Tells whether the answer's route depends on its socket: one of UDP that is bound to no address has no source until
// the route is found (udp_sendmsg). IPv6 tries again with an address if there is no route.
bool PacketWalk::answers_unbound() const {
  const auto by_source = [&](const PolicyRule& rule) { return rule.from && rule.family == packet_.family; };
  const bool may = asked_.state == ConnectionState::reply && std::ranges::any_of(pod_.rules, by_source) &&
                   is_of(Protocol::udp, packet_.now);
  if (!may) return false;
  const RouteLookup found = look_up("lo", asked_.interface, false);
  return (found.exists() || packet_.family == Family::ipv4) && found != look_up("lo", asked_.interface, true);
}

std::optional<std::string> PacketWalk::route_out(const std::string& bound) {
  take_way("lo", bound);
  return cannot_be_sent();
}

// connect() to a link-local address binds the socket to the interface of its scope (tcp_v6_connect,
// __ip6_datagram_connect), and so it stays when the packet is sent elsewhere.
std::optional<std::string> PacketWalk::bound_again() {
  const Address& asked = *asked_.destination;
  const bool by_socket = asked_.interface.empty() && asked_.state != ConnectionState::reply && !packet_.discovery;
  if (!by_socket || asked.family == Family::ipv4 || !is_link_local(asked, observer())) return asked_.interface;
  const std::string scope = way_.stays() ? interface_of(pod_, asked, observer()).value_or("") : way_.device;
  if (is_of(Protocol::tcp, packet_.now) || look_up("lo", scope) == look_up("lo", "")) return scope;
  const auto connected = is_connected();
  if (!connected) return std::nullopt;
  return *connected ? scope : "";
}

std::optional<std::string> PacketWalk::cannot_be_sent() const {
  if (!way_.exists()) return no_route(way_, packet_.now.destination.address);
  const Address& from = packet_.now.source.address;
  const bool goes_out = !way_.stays() && way_.kind != RouteLookup::Kind::unknown && way_.device != "lo";
  if (goes_out && from.family == Family::ipv4 && is_loopback(from, observer()) &&
      !has_setting(&Interface::route_localnet, way_.device)) {  // __mkroute_output
    return fmt::format("what is sent from {} cannot go out by {}", from.text(), way_.device);
  }
  return {};
}

bool PacketWalk::reroute(const std::string& because) {
  const auto bound = bound_again();
  if (!bound) return false;
  if (const auto fault = route_out(*bound)) {
    packet_.drop(fmt::format("{}, and {}{}", because, way_.exists() ? "" : "there is ", *fault));
    return false;
  }
  if (way_.kind == RouteLookup::Kind::unknown) {
    route_not_known();
    return false;
  }
  packet_.kernel(
      [&] { return fmt::format("routing again, as {}: out by {}{}", because, way_.device, why_it_stays()); });
  return true;
}

RouteLookup PacketWalk::look_up(const std::string& in, const std::string& bound, bool with_source) const {
  const PacketAtHook& now = packet_.now;
  const bool as_asked = asked_.direction != Direction::in && asked_.state != ConnectionState::reply;
  RouteKey key{now.destination.address, {}, now.mark, now.own_bits, in, bound, observer(), as_asked};
  if (with_source) key.source = now.source.address;
  return route(pod_, key);
}

void PacketWalk::take_way(const std::string& in, const std::string& bound, bool with_source) {
  way_ = look_up(in, bound, with_source);
  if (!way_.has_hops() || !bound.empty()) return;
  if (asked_.state != ConnectionState::reply) {
    packet_.doubt(
        fmt::format("`{}` has next hops by other interfaces, too, of which each connection gets one", ip_words(way_)));
  }
  if (observer() != nullptr) return;  // who asks about all packets asks about each hop: see by_each_hop()
  const auto taken = context_.forks.next_hop(way_, packet_.now.destination.address, packet_.trace.steps.size(),
                                             {{&pod_, way_.route}, packet_});
  packet_.seen = !taken;
  if (taken) way_.device = *taken;
}

void PacketWalk::end_outside(Outcome::Kind kind) {
  packet_.end(kind, "");
  Outcome& outcome = packet_.trace.outcome;
  outcome.interface = way_.device;
  if (!way_.has_hops()) return;
  if (observer() != nullptr) observer()->interface();
  const bool is_bound = asked_.direction != Direction::in && !asked_.interface.empty();
  if (is_bound) return;
  outcome.other_interfaces = way_.route->devices();
  std::erase(outcome.other_interfaces, way_.device);
}

bool PacketWalk::is_up(const std::string& device) const {
  const Interface* found = pod_.interface(device);
  return found == nullptr || found->up;
}

void PacketWalk::route_not_known() {
  const std::string words = fmt::format("`{}`", ip_words(way_));
  packet_.not_known(fmt::format("the route to {}: {}", packet_.now.destination.address.text(), words),
                    "the route by " + words);
}

std::string PacketWalk::why_it_stays() const {
  switch (way_.kind) {
    case RouteLookup::Kind::local:
      return ": the destination is the pod itself";
    case RouteLookup::Kind::by_rule:
      return fmt::format(": {} looks up table {}, local {} dev lo", selector(*way_.rule), way_.rule->table,
                         way_.route->to.prefix_length() == 0 ? "default" : way_.route->to.text());
    default:
      return "";
  }
}

}  // namespace sidetrack
