// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/forwarded.h"

#include <algorithm>

#include "model/ports.h"

namespace sidetrack::space {
namespace {

Sets::Id own_addresses(Regions& regions, const PodView& pod, Family family) {
  Intervals all;
  for (const Interface& interface : pod.interfaces) {
    for (const InterfaceAddress& own : interface.addresses) {
      if (own.address.family == family) all.push_back({value_of(own.address), value_of(own.address)});
    }
  }
  return regions.sets().of(normal(std::move(all)));
}

}  // namespace

std::vector<Box> forwarded_dns(Regions& regions, const PodView& pod) {
  std::vector<Box> boxes;
  Sets& sets = regions.sets();
  const std::vector<std::string>& interfaces = regions.universe().interfaces;
  for (const Route& route : pod.routes) {
    const auto interface = std::ranges::find(interfaces, route.device);
    const bool leads_everywhere = route.to == AddressRange::prefix(Address::any(route.to.family()), 0);
    if (route.kind != Route::Kind::unicast || leads_everywhere || route.to.first.is_link_local() ||
        route.device == "lo" || interface == interfaces.end())
      continue;
    Box box = regions.everything(Direction::in, route.to.family());
    const auto only = [&](Field field, Sets::Id values) {
      box[index(field)] = sets.intersection(box[index(field)], values);
    };
    only(Field::state, sets.single(0));
    only(Field::mark, sets.single(regions.universe().mark_class(0)));
    only(Field::protocol, sets.single(udp));
    only(Field::destination_port, sets.single(dns_port));
    only(Field::source_port, regions.client_ports(pod));
    only(Field::interface, sets.single(static_cast<Value>(interface - interfaces.begin())));
    only(Field::source, sets.of({{value_of(route.to.first), value_of(route.to.last)}}));
    Sets::Id& source = box[index(Field::source)];
    source = sets.difference(source, own_addresses(regions, pod, route.to.family()));
    if (source != Sets::empty) boxes.push_back(box);
  }
  return boxes;
}

bool loses_forwarded_replies(Regions& regions, const Box& queries, const Ending& ending) {
  const Value in = regions.sets().intervals(queries[index(Field::interface)]).front().first;
  return ending.kind == Outcome::Kind::forwarded && ending.answers == Outcome::Answers::lost &&
         ending.interface != regions.universe().interfaces.at(static_cast<std::size_t>(in));
}

}  // namespace sidetrack::space
