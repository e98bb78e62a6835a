// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/sendable.h"

#include <algorithm>
#include <string_view>

namespace sidetrack::netns {
namespace {

space::Value value(std::string_view address) { return space::value_of(*Address::parse(address)); }

class Limits {
 public:
  Limits(space::Regions& regions, Direction way, Family family, std::uint32_t mark)
      : regions_(regions), sets_(regions.sets()), box_(regions.everything(way, family)) {
    only(space::Field::state, 0);
    only(space::Field::protocol, 0);
    only(space::Field::mark, regions.universe().mark_class(mark));
    only(space::Field::source_port, 0);
    limit(space::Field::destination_port, 1, 65535);
    limit(space::Field::uid, 0, 100'000);
    limit(space::Field::gid, 0, 100'000);
  }
  void interface(std::string_view name) {
    const auto& known = regions_.universe().interfaces;
    only(space::Field::interface, static_cast<space::Value>(std::ranges::find(known, name) - known.begin()));
  }
  void source(std::string_view address) { only(space::Field::source, address.empty() ? 0 : value(address)); }
  void destinations(const std::vector<std::string_view>& addresses) {
    space::Intervals all;
    for (const auto one : addresses) all.push_back({value(one), value(one)});
    box_[space::index(space::Field::destination)] = sets_.of(space::normal(std::move(all)));
  }
  [[nodiscard]] const space::Box& box() const { return box_; }

 private:
  void only(space::Field field, space::Value one) { box_[space::index(field)] = sets_.single(one); }
  void limit(space::Field field, space::Value first, space::Value last) {
    box_[space::index(field)] = sets_.intersection(box_[space::index(field)], sets_.of({{first, last}}));
  }

  space::Regions& regions_;
  space::Sets& sets_;
  space::Box box_;
};

}  // namespace

std::vector<space::Box> sendable(space::Regions& regions, std::uint32_t mark) {
  std::vector<space::Box> all;
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    const Addresses& a = addresses(family);
    const auto add = [&](Direction way, std::string_view interface, std::string_view source,
                         const std::vector<std::string_view>& to) {
      Limits limits(regions, way, family, mark);
      limits.interface(interface);
      limits.source(source);
      limits.destinations(to);
      all.push_back(limits.box());
    };
    add(Direction::out, "", "", {a.service, a.other_service, a.excluded, a.dns, a.other_dns, a.client, a.guest});
    add(Direction::lo, "", "", {a.any_loopback, a.pod, a.pod_second});
    if (mark != 0) continue;  // the mark of a socket of the pod
    add(Direction::in, "eth0", a.client, {a.pod});
    add(Direction::in, "net1", a.guest, {a.pod_second});
  }
  return all;
}

space::Point point_of(const space::Box& box, space::Regions& regions, Dice& dice, bool edge) {
  space::Point point{};
  for (std::size_t i = 0; i < space::field_count; ++i) {
    const std::span<const space::Interval> all = regions.sets().intervals(box[i]);
    const space::Interval& one = all[dice.below(all.size())];
    point[i] = edge ? (dice.percent(50) ? one.first : one.last)
                    : one.first + dice.below(static_cast<std::size_t>(one.last - one.first) + 1);
  }
  return point;
}

Probe probe_of(const Packet& packet) {
  Probe made;
  made.packet = packet;
  made.actor = packet.direction != Direction::in ? Actor{Place::pod, {}}
               : packet.interface == "net1"      ? from_guest
                                                 : from_outside;
  if (packet.owner) made.actor.identity = {packet.owner->uid, packet.owner->gid, packet.mark != 0};
  if (packet.mark != 0) made.request.mark = packet.mark;
  made.request.protocol = packet.protocol;
  made.request.to = Endpoint(packet.destination->text(), packet.destination_port.value_or(0));
  return made;
}

Outcome outcome_of(const space::Ending& ending, const Packet& packet) {
  Outcome made;
  made.kind = ending.kind;
  made.answers = ending.answers;
  made.at = {*packet.destination, packet.destination_port};
  if (ending.translated) {
    made.original = made.at;
    made.at = {ending.to.value_or(*packet.destination), ending.port ? ending.port : packet.destination_port};
  }
  made.transparent = ending.transparent;
  made.transparent_port = ending.transparent_port;
  return made;
}

}  // namespace sidetrack::netns
