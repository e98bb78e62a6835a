// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk/not_followed.h"

#include <fmt/format.h>

#include "walk/observer.h"
#include "walk/route.h"

namespace sidetrack {
namespace {

std::optional<Outcome> not_followed(const Packet& packet, const PodView& pod, Observer* observer) {
  const Address& to = *packet.destination;
  const bool any = is_any(to, observer);
  const bool broadcast = is_broadcast(pod, to, observer);
  if (!any && !broadcast && !is_multicast(to, observer)) return {};
  if (observer != nullptr) observer->protocol();
  Outcome outcome;
  outcome.at = {to, packet.destination_port};
  if (packet.direction != Direction::in && packet.protocol == Protocol::tcp) {
    outcome.kind = Outcome::Kind::unroutable;
    outcome.why =
        fmt::format("no tcp connection to {}, a {} address", to.text(), broadcast ? "broadcast" : "multicast");
  } else {
    outcome.kind = Outcome::Kind::unknown;
    outcome.subject = many_receivers;
    outcome.why = fmt::format("which hosts receive what is sent to {}, {}", to.text(),
                              any         ? "no address"
                              : broadcast ? "a broadcast address"
                                          : "a multicast address");
  }
  return outcome;
}

// A route by a rule gives such a connection a source that is not the pod's, which only a transparent socket may have
// (__ip_dev_find in ip_route_output_key_hash_rcu).
std::optional<Outcome> without_source(const Packet& packet, const Packet& asked, const PodView& pod,
                                      Observer* observer) {
  if (packet.source || asked.direction != Direction::out || asked.destination->family != Family::ipv4) return {};
  const Address& to = *asked.destination;
  const RouteLookup way = route(pod, {to, {}, asked.mark, "lo", asked.interface, observer});
  if (way.kind != RouteLookup::Kind::by_rule || is_local(pod, to, observer)) return {};
  if (observer != nullptr) observer->protocol();
  if (asked.protocol != Protocol::tcp) return {};
  Outcome outcome;
  outcome.kind = Outcome::Kind::unroutable;
  outcome.at = {to, asked.destination_port};
  outcome.why = fmt::format("the route to {} gives it no source address of the pod", to.text());
  return outcome;
}

}  // namespace

std::optional<Outcome> without_walk(const Packet& packet, const Packet& asked, const PodView& pod, Observer* observer) {
  auto outcome = not_followed(asked, pod, observer);
  return outcome ? outcome : without_source(packet, asked, pod, observer);
}

}  // namespace sidetrack
