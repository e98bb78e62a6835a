// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/forwarded.h"

#include <algorithm>
#include <optional>

#include "model/ports.h"
#include "walk/forwarded_dns.h"
#include "walk/route.h"

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

// New connections from the hosts of that network; nothing if none can come from there.
std::optional<Box> from_network(Regions& regions, const PodView& pod, const Route& route) {
  Sets& sets = regions.sets();
  const Family family = route.family();
  const std::vector<std::string>& interfaces = regions.universe().interfaces;
  const auto interface = std::ranges::find(interfaces, route.device);
  const bool leads_everywhere = route.to == AddressRange::prefix(Address::any(family), 0);
  if (route.kind != Route::Kind::unicast || leads_everywhere || route.to.first.is_link_local() ||
      !leads_behind(pod, family, route.device) || interface == interfaces.end())
    return {};
  Box box = regions.everything(Direction::in, family);
  box[index(Field::state)] = sets.single(0);
  box[index(Field::mark)] = sets.single(regions.universe().mark_class(0));
  box[index(Field::interface)] = sets.single(static_cast<Value>(interface - interfaces.begin()));
  box[index(Field::source)] = sets.difference(sets.of({{value_of(route.to.first), value_of(route.to.last)}}),
                                              own_addresses(regions, pod, family));
  if (box[index(Field::source)] == Sets::empty) return {};
  return box;
}

}  // namespace

std::vector<Box> forwarded(Regions& regions, const PodView& pod) {
  std::vector<Box> boxes;
  for (const Route& route : pod.routes) {
    std::optional<Box> box = from_network(regions, pod, route);
    if (!box || default_route(pod, route.family()) == nullptr) continue;
    constexpr std::size_t source = index(Field::source);
    constexpr std::size_t destination = index(Field::destination);
    (*box)[destination] = regions.ordinary(pod, Direction::out, route.family())[destination];
    (*box)[index(Field::cgroup)] = regions.sets().single(0);
    const auto same = std::ranges::find_if(boxes, [&](Box one) {
      one[source] = (*box)[source];
      return one == *box;
    });
    if (same == boxes.end()) {
      boxes.push_back(*box);
    } else {
      (*same)[source] = regions.sets().set_union((*same)[source], (*box)[source]);
    }
  }
  return boxes;
}

std::vector<Box> forwarded_dns(Regions& regions, const PodView& pod) {
  std::vector<Box> boxes;
  for (const Route& route : pod.routes) {
    std::optional<Box> box = from_network(regions, pod, route);
    if (!box) continue;
    (*box)[index(Field::protocol)] = regions.sets().single(udp);
    (*box)[index(Field::destination_port)] = regions.sets().single(dns_port);
    (*box)[index(Field::source_port)] = regions.client_ports(pod);
    boxes.push_back(*box);
  }
  return boxes;
}

const std::string& interface_of(const Regions& regions, const Box& box) {
  const Value number = regions.sets().intervals(box[index(Field::interface)]).front().first;
  return regions.universe().interfaces.at(static_cast<std::size_t>(number));
}

bool loses_forwarded_replies(Regions& regions, const Box& queries, const Ending& ending) {
  return ending.kind == Outcome::Kind::forwarded && ending.answers == Outcome::Answers::lost &&
         ending.interface != interface_of(regions, queries);
}

}  // namespace sidetrack::space
