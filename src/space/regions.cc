// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/regions.h"

#include <algorithm>

#include "evaluate/explain.h"
#include "evaluate/hook_calls.h"
#include "evaluate/route.h"
#include "space/join.h"

namespace sidetrack::space {
namespace {

bool same_rule(const Step* a, const Step* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->live == b->live && a->number == b->number && a->chain == b->chain && a->table == b->table;
}

std::vector<Side> with_joined_rules(std::vector<Side> sides) {
  for (Side& side : sides) side.live = joined(std::move(side.live));
  return sides;
}

}  // namespace

Universe Regions::universe_of(const std::vector<Side>& sides) {
  std::vector<const PodView*> pods;
  std::vector<std::span<const Live>> lives;
  for (const Side& side : sides) {
    pods.push_back(&side.pod);
    lives.emplace_back(side.live);
  }
  return {pods, lives};
}

Regions::Regions(std::vector<Side> sides)
    : sides_(with_joined_rules(std::move(sides))), universe_(universe_of(sides_)), diagrams_(universe_, sets_) {
  decisions_.resize(2);
  endings_ = {uncovered, no_such_packet};
}

Regions::~Regions() = default;

RulesOfFamily& Regions::rules_of(const Side& side, Family family) {
  std::unique_ptr<RulesOfFamily>& rules = rules_[{&side, family}];
  if (rules == nullptr) rules = std::make_unique<RulesOfFamily>(side.live, family);
  return *rules;
}

Leaf Regions::leaf_of(Ending ending, const Step* step) {
  Leaf like = 0;
  for (Leaf leaf = no_such_packet + 1; leaf < decisions_.size(); ++leaf) {
    if (decisions_[leaf].ending != ending) continue;
    if (like == 0) like = endings_[leaf];
    if (same_rule(decisions_[leaf].step, step)) return leaf;
  }
  if (step != nullptr) step = &steps_.emplace_back(*step);
  decisions_.push_back({std::move(ending), step});
  const auto made = static_cast<Leaf>(decisions_.size() - 1);
  endings_.push_back(like == 0 ? made : like);
  return made;
}

Leaf Regions::decide(const Point& point, const Side& side, Box& box) {
  ++followed_;
  Cell cell(universe_, sets_, known_, point);
  const Packet packet = universe_.packet(point);
  const auto way = packet.direction;
  const auto done = [&](Leaf leaf) {
    box = cell.box();
    return leaf;
  };
  Intervals possible;  // interfaces
  for (Value i = 0; i < universe_.interfaces.size(); ++i) {
    const std::string& name = universe_.interfaces[static_cast<std::size_t>(i)];
    const bool is_there = name.empty() || side.pod.interface(name) != nullptr;
    if (is_there && universe_.can_be(way, i)) possible.push_back({i, i});
  }
  const Sets::Id interfaces = sets_.of(normal(std::move(possible)));
  cell.interface(interfaces);
  if (!sets_.contains(interfaces, point[index(Field::interface)])) return done(no_such_packet);
  // Sockets of IPv6 name IPv4 addresses so; no packet does.
  static const AddressRange mapped = *AddressRange::parse("::ffff:0:0/96");
  if (packet.destination->family == Family::ipv6) {
    cell.address(*packet.destination, {&mapped, 1});
    if (packet.source) cell.address(*packet.source, {&mapped, 1});
    if (mapped.contains(*packet.destination) || (packet.source && mapped.contains(*packet.source)))
      return done(no_such_packet);
  }
  if (way != Direction::in && is_local(side.pod, *packet.destination, &cell) != (way == Direction::lo))
    return done(no_such_packet);
  const auto all = possibilities(packet, side.pod, rules_of(side, packet.destination->family), cell);
  const Trace& trace = all.front().trace;
  const Step* step = trace.decisive.empty() ? nullptr : &trace.steps[trace.decisive.back()];
  if (step != nullptr && step->kind < Step::Kind::passed) step = nullptr;
  return done(leaf_of(ending_of(all), step));
}

Box Regions::everything(Direction way, Family family) {
  Box box{};
  for (std::size_t i = 0; i < field_count; ++i) box[i] = sets_.of({universe_.domain(static_cast<Field>(i), family)});
  box[index(Field::way)] = sets_.single(static_cast<Value>(way));
  box[index(Field::family)] = sets_.single(family == Family::ipv4 ? 0 : 1);
  return box;
}

Box Regions::ordinary(const PodView& pod, Direction way, Family family) {
  Intervals own;
  Intervals local;
  Intervals not_hosts{{0, 0}};
  Intervals ways_out{{0, 0}};
  const auto add = [&](Intervals& to, const AddressRange& range) {
    to.push_back({value_of(range.first), value_of(range.last)});
  };
  const bool ipv4 = family == Family::ipv4;
  // Multicast, broadcast; IPv4 in IPv6; what needs a scope.
  for (const char* range : {"224.0.0.0/4", "255.255.255.255"}) {
    if (ipv4) add(not_hosts, *AddressRange::parse(range));
  }
  for (const char* range : {"ff00::/8", "::ffff:0:0/96", "fe80::/10"}) {
    if (!ipv4) add(not_hosts, *AddressRange::parse(range));
  }
  add(local, *AddressRange::parse(ipv4 ? "127.0.0.0/8" : "::1"));
  for (const Interface& interface : pod.interfaces) {
    const auto number = std::ranges::find(universe_.interfaces, interface.name) - universe_.interfaces.begin();
    if (interface.name != "lo") ways_out.push_back({static_cast<Value>(number), static_cast<Value>(number)});
    for (const InterfaceAddress& one : interface.addresses) {
      if (one.address.family != family) continue;
      add(local, AddressRange::single(one.address));
      if (interface.name != "lo") add(own, AddressRange::single(one.address));
      if (!ipv4 || one.prefix_length > 30) continue;
      const AddressRange network = AddressRange::prefix(one.address, one.prefix_length);
      for (const Address& end : {network.first, network.last}) {
        if (end != one.address) add(not_hosts, AddressRange::single(end));
      }
    }
  }
  const auto set = [&](Intervals of) { return sets_.of(normal(std::move(of))); };
  const Sets::Id usual = sets_.single(0);
  Box box = everything(way, family);
  const auto at = [&](Field field) -> Sets::Id& { return box[index(field)]; };
  at(Field::state) = usual;
  const Sets::Id hosts = sets_.without(at(Field::destination), set(not_hosts));
  const Sets::Id others = sets_.without(hosts, set(local));
  switch (way) {
    case Direction::out:
      at(Field::interface) = set(ways_out);
      at(Field::source) = sets_.either(usual, set(own));
      at(Field::destination) = others;
      break;
    case Direction::lo:
      at(Field::interface) = usual;
      at(Field::source) = sets_.either(usual, set(local));
      at(Field::destination) = sets_.both(hosts, set(local));
      break;
    case Direction::in:
      at(Field::interface) = sets_.without(set(ways_out), usual);
      at(Field::source) = sets_.either(usual, others);
      at(Field::destination) = set(own);
      at(Field::mark) = sets_.single(universe_.mark_class(0));
      break;
  }
  return box;
}

// All that is in none of the boxes is no such packet; the rest is uncovered.
Regions::Node Regions::outside(std::span<const Box> boxes) {
  constexpr Leaf inside = 2;
  Node marked = diagrams_.nothing();
  for (const Box& box : boxes) {
    if (std::ranges::find(box, Sets::empty) == box.end()) marked = diagrams_.with(marked, box, inside);
  }
  return diagrams_.mapped(marked, [](Leaf leaf) { return leaf == inside ? uncovered : no_such_packet; });
}

Regions::Node Regions::outside_ordinary(const PodView& pod) {
  std::vector<Box> boxes;
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    for (const Direction way : {Direction::out, Direction::in, Direction::lo})
      boxes.push_back(ordinary(pod, way, family));
  }
  return outside(boxes);
}

// Packets are followed until none is uncovered.
Regions::Node Regions::completed(Node root, std::size_t number) {
  while (const auto open = diagrams_.first_uncovered(root)) {
    Box box{};
    const Leaf leaf = decide(example(*open), sides_[number], box);
    root = diagrams_.with(root, box, leaf);
  }
  return root;
}

Regions::Node Regions::of(std::size_t number, Scope scope) {
  return completed(scope == Scope::everything ? diagrams_.nothing() : outside_ordinary(sides_[number].pod), number);
}

Regions::Node Regions::of(std::size_t number, std::span<const Box> boxes) { return completed(outside(boxes), number); }

Regions::Node Regions::ordinary_part(Node root, const PodView& pod) {
  return diagrams_.combined(root, outside_ordinary(pod),
                            [](Leaf leaf, Leaf outside) { return outside == no_such_packet ? no_such_packet : leaf; });
}

void Regions::for_each(Node root, const std::function<void(const Box&, const Box&, Leaf)>& one) {
  diagrams_.for_each(root, [&](const Box& box, Leaf leaf) {
    for (const Direction way : {Direction::out, Direction::in, Direction::lo}) {
      for (const Family family : {Family::ipv4, Family::ipv6}) {
        const Box whole = everything(way, family);
        Box part = box;
        for (const Field field : {Field::way, Field::family})
          part[index(field)] = sets_.both(box[index(field)], whole[index(field)]);
        if (part[index(Field::way)] != Sets::empty && part[index(Field::family)] != Sets::empty) one(part, whole, leaf);
      }
    }
  });
}

Point Regions::example(const Box& box) const {
  // Documentation addresses, an app's uid, a port of the web; then what lies within the largest interval.
  static const std::vector<Value> usual_ids{1000, 0};
  static const std::vector<Value> usual_ports{80, 8080};
  static const std::vector<Value> none{0};
  const bool ipv6 = sets_.contains(box[index(Field::family)], 0) == false;
  const auto address = [&](const char* ipv4_text, const char* ipv6_text) {
    return std::vector<Value>{value_of(*Address::parse(ipv6 ? ipv6_text : ipv4_text))};
  };
  Point point{};
  for (std::size_t i = 0; i < field_count; ++i) {
    const auto field = static_cast<Field>(i);
    std::vector<Value> usual;
    if (field == Field::uid || field == Field::gid) usual = usual_ids;
    if (field == Field::destination_port) usual = usual_ports;
    if (field == Field::destination) usual = address("198.51.100.1", "2001:db8:ffff::1");
    if (field == Field::source || field == Field::source_port || field == Field::mark) usual = none;
    const auto found = std::ranges::find_if(usual, [&](Value value) { return sets_.contains(box[i], value); });
    if (found != usual.end()) {
      point[i] = *found;
      continue;
    }
    const Intervals& all = sets_.intervals(box[i]);
    const auto largest = std::ranges::max_element(all, {}, [](const Interval& one) { return one.last - one.first; });
    // Fields of one kind get other values, so that they are not taken for each other.
    const Value part = field == Field::source || field == Field::source_port ? 3 : 2;
    point[i] = field <= Field::interface ? all.front().first : largest->first + (largest->last - largest->first) / part;
  }
  return point;
}

}  // namespace sidetrack::space
