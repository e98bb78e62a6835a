// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include "evaluate/observer.h"
#include "evaluate/packet_walk.h"

namespace sidetrack {

// A sender that has chosen no source address gets that of the route. IPv4 looks the route up again with it in connect()
// alone (ip_route_connect), IPv6 where there is none without (ip6_dst_lookup_tail).
std::optional<std::string> PacketWalk::first_route() {
  const bool ipv4 = packet_.family == Family::ipv4;
  const bool chosen = question_.source_chosen || asked_.state == ConnectionState::reply;
  if (!chosen && ipv4 && observer() != nullptr) observer()->protocol();
  if (chosen || (ipv4 && asked_.protocol == Protocol::tcp)) return route_out();
  take_way("lo", asked_.interface, false);
  if (ipv4 ? is_connected() : !way_.exists()) return route_out();
  return cannot_be_sent();
}

// Whether the socket is one of connect(), where that makes a difference.
bool PacketWalk::is_connected() {
  const Route again = look_up("lo", asked_.interface);
  if (again == way_) return false;
  const char* subject = "whether its socket is connected";
  const auto way = question_.forks.choose({subject, subject, {"if it is not", "if it is"}, packet_.trace.steps.size()},
                                          {{&pod_}, packet_});
  packet_.seen = !way;
  return way == 1;
}

std::optional<std::string> PacketWalk::route_out() {
  take_way("lo", asked_.interface);
  return cannot_be_sent();
}

std::optional<std::string> PacketWalk::cannot_be_sent() const {
  if (!way_.exists()) return no_route(way_, packet_.now.destination.address);
  const Address& from = packet_.now.source.address;
  const bool goes_out = !way_.stays() && way_.kind != Route::Kind::unknown && way_.device != "lo";
  if (goes_out && from.family == Family::ipv4 && is_loopback(from, observer()) &&
      !has_setting(&Interface::takes_loopback, way_.device)) {  // __mkroute_output
    return fmt::format("what is sent from {} cannot go out by {}", from.text(), way_.device);
  }
  return {};
}

bool PacketWalk::reroute(const std::string& because) {
  if (const auto fault = route_out()) {
    packet_.drop(fmt::format("{}, and {}{}", because, way_.exists() ? "" : "there is ", *fault));
    return false;
  }
  if (way_.kind == Route::Kind::unknown) {
    route_not_known();
    return false;
  }
  packet_.kernel(
      [&] { return fmt::format("routing again, as {}: out by {}{}", because, way_.device, why_it_stays()); });
  return true;
}

Route PacketWalk::look_up(const std::string& in, const std::string& bound, bool with_source) const {
  const PacketAtHook& now = packet_.now;
  const bool as_asked = asked_.direction != Direction::in && asked_.state != ConnectionState::reply;
  RouteKey key{now.destination.address, {}, now.mark, in, bound, observer(), as_asked};
  if (with_source) key.source = now.source.address;
  return route(pod_, key);
}

void PacketWalk::take_way(const std::string& in, const std::string& bound, bool with_source) {
  way_ = look_up(in, bound, with_source);
  if (way_.kind == Route::Kind::unknown || asked_.state == ConnectionState::reply) return;
  if (way_.route == nullptr || !way_.route->has_other_devices) return;
  packet_.doubt(
      fmt::format("`{}` has next hops by other interfaces, too, of which each connection gets one; {} is followed",
                  ip_words(way_), way_.device));
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
    case Route::Kind::local:
      return ": the destination is the pod itself";
    case Route::Kind::by_rule:
      return fmt::format(": {} looks up table {}, local {} dev lo", conditions(*way_.rule), way_.rule->table,
                         way_.route->to.prefix_length() == 0 ? "default" : way_.route->to.text());
    default:
      return "";
  }
}

}  // namespace sidetrack
