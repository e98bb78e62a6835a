// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "model/error.h"
#include "rule/iptables.h"
#include "space/join.h"
#include "walk/explain.h"
#include "walk/hook_calls.h"
#include "walk/route.h"

namespace sidetrack::space {
namespace {

constexpr std::size_t most_bytes = 512U << 20;

bool same_rule(const Step* a, const Step* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->live == b->live && a->number == b->number && a->in == b->in;
}

std::vector<Side> with_joined_rules(std::vector<Side> sides) {
  for (Side& side : sides) side.live = joined(std::move(side.live));
  return sides;
}

// What asks for a mark cannot be known, then.
void forget_marks(Side& side) {
  for (Live& live : side.live) {
    for (LiveChain& chain : live.chains) {
      for (LiveRule& rule : chain.rules) {
        for (Match& match : rule.rule.matches) {
          if ((reads(match) & (facts::mark | facts::connmark)) != 0) match = UnknownMatch{iptables_words(match)};
        }
      }
    }
  }
  for (PolicyRule& rule : side.pod.rules) {
    if (rule.mask == 0) continue;
    rule.more += fmt::format("{}fwmark {:#x}/{:#x}", rule.more.empty() ? "" : " ", rule.mark, rule.mask);
    rule.mark = rule.mask = 0;
  }
}

}  // namespace

struct Regions::Pod {
  const Side& side;
  FamilyRules ipv4{side.live, Family::ipv4};
  FamilyRules ipv6{side.live, Family::ipv6};
  States states;

  Pod(const Side& of, Node unknown) : side(of), states(unknown) {}
};

struct Regions::Followed {
  std::vector<Leg> legs;
  Leaf end = uncovered;  // of the last leg; uncovered: what becomes of it from the last state on is known
};

Universe Regions::universe_of(const std::vector<Side>& sides) {
  std::vector<const PodView*> pods;
  std::vector<std::span<const Live>> lives;
  for (const Side& side : sides) {
    pods.push_back(&side.pod);
    lives.emplace_back(side.live);
  }
  return {pods, lives};
}

Regions::Regions(std::vector<Side> sides, std::size_t most)
    : sides_(with_joined_rules(std::move(sides))),
      universe_(universe_of(sides_)),
      diagrams_(universe_, sets_),
      most_followed_(most) {
  decisions_.resize(2);
  endings_ = {uncovered, no_such_packet};
  for (const Direction way : {Direction::out, Direction::in, Direction::lo}) {
    for (const Family family : {Family::ipv4, Family::ipv6}) {
      Box& whole = wholes_.emplace_back();
      for (std::size_t i = 0; i < field_count; ++i)
        whole[i] = sets_.of({universe_.domain(static_cast<Field>(i), family)});
      whole[index(Field::way)] = sets_.single(static_cast<Value>(way));
      whole[index(Field::family)] = sets_.single(value_of(family));
    }
  }
  if (!universe_.marks_known) std::ranges::for_each(sides_, forget_marks);
  for (const Side& side : sides_) pods_.push_back(std::make_unique<Pod>(side, diagrams_.nothing()));
}

Regions::~Regions() = default;

Leaf Regions::leaf_of(Ending ending, const Step* step, bool inherited) {
  Leaf like = 0;
  for (Leaf leaf = no_such_packet + 1; leaf < decisions_.size(); ++leaf) {
    if (decisions_[leaf].ending != ending) continue;
    if (like == 0) like = endings_[leaf];
    if (same_rule(decisions_[leaf].step, step) && decisions_[leaf].inherited == inherited) return leaf;
  }
  if (step != nullptr) {
    name_chain(steps_.emplace_back(*step));
    step = &steps_.back();
  }
  decisions_.push_back({std::move(ending), step, inherited});
  const auto made = static_cast<Leaf>(decisions_.size() - 1);
  endings_.push_back(like == 0 ? made : like);
  return made;
}

// Of the last leg.
Leaf Regions::leaf_of(const Leg& leg, const std::vector<Possibility>& all) {
  const Trace& trace = all.front().trace;
  const Step* step = trace.decisive.empty() ? nullptr : &trace.steps[trace.decisive.back()];
  if (step != nullptr && step->kind < Step::Kind::passed) step = nullptr;
  const bool inherited = !leg.decided && (step == nullptr || trace.decisive.back() < leg.steps);
  return leaf_of(ending_of(all), inherited ? nullptr : step, inherited);
}

Regions::Followed Regions::follow(const Point& point, Pod& pod) {
  ++followed_;
  // Those of icmp too, for whose nobody asks: so it comes to the states of others.
  const Packet packet = universe_.packet_with_ports(point);
  Cell cell(universe_, sets_, diagrams_, known_, pod.states, point, packet);
  const Side& side = pod.side;
  const auto way = packet.direction;
  Intervals possible;  // interfaces
  for (Value i = 0; i < universe_.interfaces.size(); ++i) {
    const std::string& name = universe_.interfaces[static_cast<std::size_t>(i)];
    const bool is_there = name.empty() || side.pod.interface(name) != nullptr;
    if (is_there && universe_.can_be(way, i)) possible.push_back({i, i});
  }
  const Sets::Id interfaces = sets_.of(normal(std::move(possible)));
  cell.interface(interfaces);
  const auto none = [&] { return Followed{cell.legs(), no_such_packet}; };
  if (!sets_.contains(interfaces, point[index(Field::interface)])) return none();
  if (way == Direction::in) cell.interface(sets_.single(point[index(Field::interface)]));
  // Sockets of IPv6 name IPv4 addresses so; no packet does.
  static const AddressRange mapped = *AddressRange::parse("::ffff:0:0/96");
  if (packet.destination->family == Family::ipv6) {
    cell.address(*packet.destination, {&mapped, 1});
    if (packet.source) cell.address(*packet.source, {&mapped, 1});
    if (mapped.contains(*packet.destination) || (packet.source && mapped.contains(*packet.source))) return none();
  }
  // A bound socket may send what is for the pod itself out of it: that is `out`, too.
  if (way != Direction::in && is_local(side.pod, *packet.destination, &cell) != (way == Direction::lo)) {
    if (way == Direction::lo) return none();
    const Value bound = point[index(Field::interface)];
    const Sets::Id no_device = sets_.single(unbound);
    cell.interface(bound == unbound ? no_device : sets_.difference(interfaces, no_device));
    if (bound == unbound) return none();
  }
  FamilyRules& rules = packet.destination->family == Family::ipv4 ? pod.ipv4 : pod.ipv6;
  const auto all = possibilities(packet, side.pod, rules, cell);
  return {cell.legs(), all.empty() ? uncovered : leaf_of(cell.legs().back(), all)};
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
  if (way == Direction::in) at(Field::cgroup) = usual;
  const Sets::Id hosts = sets_.difference(at(Field::destination), set(not_hosts));
  const Sets::Id others = sets_.difference(hosts, set(local));
  switch (way) {
    case Direction::out:
      at(Field::interface) =
          usual;  // a bound socket takes no route to lo: what is redirected to lo leaves, and is lost
      at(Field::source) = sets_.set_union(usual, set(own));
      at(Field::destination) = others;
      break;
    case Direction::lo:
      at(Field::interface) = usual;
      at(Field::source) = sets_.set_union(usual, set(local));
      at(Field::destination) = sets_.intersection(hosts, set(local));
      break;
    case Direction::in:
      at(Field::interface) = sets_.difference(set(ways_out), usual);
      at(Field::source) = sets_.set_union(usual, others);
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
    if (!is_empty(box)) marked = diagrams_.with(marked, box, inside);
  }
  return diagrams_.mapped(marked, [](Leaf leaf) { return leaf == inside ? uncovered : no_such_packet; });
}

Regions::Node Regions::outside_ordinary(const PodView& pod, Scope scope) {
  std::vector<Box> boxes;
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    for (const Direction way : {Direction::out, Direction::in, Direction::lo}) {
      Box& box = boxes.emplace_back(ordinary(pod, way, family));
      if (scope == Scope::connections) box[index(Field::state)] = sets_.of({{0, 1}});  // of connection_states
      if (scope == Scope::any_state) box[index(Field::state)] = everything(way, family)[index(Field::state)];
    }
  }
  return outside(boxes);
}

void Regions::require_room() const {
  if (sets_.bytes() + diagrams_.bytes() <= most_bytes && followed_ < most_followed_) return;
  throw TooManyRegions(ExitCode::failed, fmt::format("the analysis of all packets exceeds {} MiB", most_bytes >> 20),
                       "ask for one packet: sidetrack explain");
}

// Packets that come to the state are followed until what becomes of all in the box is known. The box holds only packets
// that come there.
void Regions::complete(Pod& pod, States::Number state, const Box& within) {
  while (const auto open = diagrams_.first_uncovered(pod.states.further(state), within)) {
    require_room();
    const Point point = example(*open);
    const Followed followed = follow(point, pod);
    const auto leg = std::ranges::find(followed.legs, state, &Leg::from);
    if (leg == followed.legs.end()) throw std::logic_error("a packet left the way of those that answer alike");
    learn(pod, followed, static_cast<std::size_t>(leg - followed.legs.begin()), within);
    if (diagrams_.at(pod.states.further(state), point) == uncovered)
      throw std::logic_error("a packet was followed and nothing is known of it");
  }
}

// What becomes of all that go this leg with the packet: what becomes of them in the state where it ends, which is
// completed for those of the box.
void Regions::learn(Pod& pod, const Followed& followed, std::size_t number, const Box& within) {
  const Leg& leg = followed.legs[number];
  if (number + 1 == followed.legs.size()) {
    if (followed.end == uncovered) return;
    Node& known = pod.states.further(leg.from);
    known = diagrams_.with(known, leg.box, followed.end);
    return;
  }
  const Leg& next = followed.legs[number + 1];
  const Box inside = intersection(sets_, within, leg.box);
  learn(pod, followed, number + 1, inside);
  complete(pod, next.from, inside);
  const bool passes_on = !leg.left_alone && !leg.decided;
  Node& known = pod.states.further(leg.from);
  known = diagrams_.with(known, leg.box, pod.states.further(next.from), [&](Leaf leaf) {
    const Decision& decision = decisions_[leaf];
    if (!decision.inherited || passes_on) return leaf;
    return leaf_of(decision.ending, leg.left_alone ? &*leg.left_alone : nullptr, false);
  });
}

// Packets are followed until none is uncovered.
Regions::Node Regions::completed(Node root, std::size_t number) {
  Pod& pod = *pods_[number];
  pod.states.further(States::start) = root;
  for (const Box& whole : wholes_) complete(pod, States::start, whole);
  return pod.states.further(States::start);
}

Regions::Node Regions::of(std::size_t number, Scope scope) {
  const PodView& pod = sides_[number].pod;
  return completed(scope == Scope::everything ? diagrams_.nothing() : outside_ordinary(pod, scope), number);
}

Regions::Node Regions::of(std::size_t number, std::span<const Box> boxes) { return completed(outside(boxes), number); }

Regions::Node Regions::ordinary_part(Node root, const PodView& pod) {
  return diagrams_.combined(root, outside_ordinary(pod),
                            [](Leaf leaf, Leaf outside) { return outside == no_such_packet ? no_such_packet : leaf; });
}

void Regions::for_each(Node root, const std::function<void(const Box&, const Box&, Leaf)>& one) {
  diagrams_.for_each(root, [&](const Box& box, Leaf leaf) {
    for (const Box& whole : wholes_) {
      Box part = box;
      for (const Field field : {Field::way, Field::family})
        part[index(field)] = sets_.intersection(box[index(field)], whole[index(field)]);
      if (part[index(Field::way)] != Sets::empty && part[index(Field::family)] != Sets::empty) one(part, whole, leaf);
    }
  });
}

Point Regions::example(const Box& box) const {
  // Documentation addresses, an app's uid, a port of the web, no mark; then what lies within the largest interval.
  static const std::vector<Value> usual_ids{1000, 0};
  static const std::vector<Value> usual_ports{80, 8080};
  static const std::vector<Value> none{0};
  const bool ipv6 = family_of(sets_, box) == Family::ipv6;
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
    if (field == Field::source || field == Field::source_port || field == Field::cgroup) usual = none;
    if (field == Field::mark) usual = {universe_.mark_class(0)};
    const auto found = std::ranges::find_if(usual, [&](Value value) { return sets_.contains(box[i], value); });
    if (found != usual.end()) {
      point[i] = *found;
      continue;
    }
    const Intervals& all = sets_.intervals(box[i]);
    const auto largest = std::ranges::max_element(all, {}, [](const Interval& one) { return one.last - one.first; });
    // Fields of one kind get other values, so that they are not taken for each other.
    const Value part = field == Field::source || field == Field::source_port ? 3 : 2;
    point[i] = field <= Field::interface || field == Field::cgroup
                   ? all.front().first
                   : largest->first + (largest->last - largest->first) / part;
  }
  return point;
}

}  // namespace sidetrack::space
