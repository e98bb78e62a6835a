// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "walk/observer.h"
#include "walk/packet_walk.h"

namespace sidetrack {
namespace {

bool has_ipv4(const Interface& interface) {
  return std::ranges::any_of(interface.addresses,
                             [](const InterfaceAddress& own) { return own.address.family == Family::ipv4; });
}

// Whether sources are looked up although no setting asks for it (fib_has_custom_local_routes).
bool has_local_routes(const PodView& pod) {
  return std::ranges::any_of(pod.routes, [](const Route& route) {
    return route.kind == Route::Kind::local && route.to.family() == Family::ipv4 && route.table != local_table;
  });
}

}  // namespace

bool PacketWalk::takes_source() {
  if (packet_.family != Family::ipv4) return true;
  const PacketAtHook& now = packet_.now;
  const Interface* in = pod_.interface(now.in);
  const bool by_mark = has_setting(&Interface::src_valid_mark, now.in);
  const RpFilter filter = in != nullptr ? in->rp_filter : RpFilter::off;
  // Else only own addresses are refused, which was asked before.
  if (!by_mark && filter == RpFilter::off && !has_local_routes(pod_)) return true;

  const Address& source = now.source.address;
  const std::uint32_t mark = by_mark ? now.mark : 0;
  const std::uint32_t own_bits = by_mark ? now.own_bits : 0;
  const std::string& way = way_.stays() ? "lo" : way_.device;
  const RouteLookup back = route(pod_, {source, now.destination.address, mark, own_bits, way, "", observer(), false});
  const auto drop = [&](std::string because) {
    packet_.drop(std::move(because));
    return false;
  };
  if (back.stays()) {
    if (has_setting(&Interface::accept_local, now.in)) {
      if (filter == RpFilter::off) return true;
      packet_.not_known(
          fmt::format("whether {} can come in by {}: accept_local and rp_filter are both set", source.text(), now.in),
          "whether accept_local goes before rp_filter");
      return false;
    }
    const std::string because =
        mark != 0 ? fmt::format("src_valid_mark of {} is 1: by the mark {:#x} its source is local", now.in, mark)
                  : fmt::format("{} cannot come in by {}", source.text(), now.in);
    return drop(because + " (martian)");
  }
  if (filter == RpFilter::off || (back.kind == RouteLookup::Kind::unicast && back.device == now.in)) return true;
  const bool has_address = in != nullptr && has_ipv4(*in);
  if (filter == RpFilter::loose && has_address && back.kind == RouteLookup::Kind::unicast) return true;
  const std::string setting = fmt::format("rp_filter of {} is {}", now.in, static_cast<int>(filter));
  if (back.kind == RouteLookup::Kind::unknown) {
    const std::string words = fmt::format("`{}`", ip_words(back));
    packet_.not_known(fmt::format("the route back to {}, and {}: {}", source.text(), setting, words),
                      "the route by " + words);
    return false;
  }
  if (!back.exists()) return drop(fmt::format("{}, and there is {}", setting, no_route(back, source)));
  return drop(fmt::format("{}, and the way back to {} is by {}", setting, source.text(), back.device));
}

}  // namespace sidetrack
