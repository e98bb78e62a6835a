// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/cell.h"

#include <algorithm>

namespace sidetrack::space {
namespace {

constexpr std::size_t few_intervals = 32;  // so many are made anew sooner than they are kept in mind

Intervals intervals_of(std::span<const AddressRange> ranges) {
  Intervals all;
  for (const AddressRange& range : ranges) all.push_back({value_of(range.first), value_of(range.last)});
  return normal(std::move(all));
}

template <typename Number>
Intervals intervals_of(const std::vector<Range<Number>>& ranges) {
  Intervals all;
  for (const Range<Number>& range : ranges) all.push_back({range.first, range.last});
  return normal(std::move(all));
}

}  // namespace

Cell::Cell(const Universe& universe, Sets& sets, Diagrams& diagrams, Known& known, States& states, const Point& point,
           const Packet& packet)
    : universe_(universe),
      sets_(sets),
      diagrams_(diagrams),
      known_(known),
      states_(states),
      point_(point),
      packet_(packet) {
  const Family family = packet_.destination->family;
  for (std::size_t i = 0; i < field_count; ++i) whole_[i] = sets_.of({universe_.domain(static_cast<Field>(i), family)});
  for (const Field field : {Field::way, Field::family, Field::state})
    whole_[index(field)] = sets_.single(point_[index(field)]);
  Leg& first = legs_.emplace_back();
  first.box = whole_;
  first.decided = true;
}

bool Cell::checkpoint(const Checkpoint& checkpoint) {
  exclude_all();
  const States::Number state = states_.of(checkpoint.state);
  ++leg_;
  if (leg_ == legs_.size()) {
    Leg& before = legs_.back();
    const bool left_alone = checkpoint.left_alone && *checkpoint.left_alone >= before.steps;
    if (left_alone) before.left_alone = checkpoint.trace.steps[*checkpoint.left_alone];
    Leg& leg = legs_.emplace_back();
    leg.from = state;
    leg.box = whole_;
    leg.steps = checkpoint.trace.steps.size();
    leg.decided = checkpoint.decided;
  }
  return diagrams_.at(states_.further(state), point_) == uncovered;
}

void Cell::narrow(const Narrowing& narrowing) {
  const std::size_t field = index(narrowing.field);
  Sets::Id& now = box()[field];
  if (is_one(narrowing)) {
    now = sets_.intersection(now, narrowing.values);
  } else if (sets_.intervals(now).size() < few_intervals) {
    now = sets_.difference(now, narrowing.values);
  } else {
    excluded_[field].push_back(narrowing.values);
    if (excluded_[field].size() >= sets_.intervals(now).size()) exclude(field);
  }
}

void Cell::exclude(std::size_t field) {
  if (excluded_[field].empty()) return;
  box()[field] = sets_.difference(box()[field], excluded_[field]);
  excluded_[field].clear();
}

void Cell::exclude_all() {
  for (std::size_t field = 0; field < field_count; ++field) exclude(field);
}

double Cell::left_by(const Narrowings& narrowings) {
  double left = 1;
  for (const Narrowing& each : narrowings) {
    const double share = sets_.share(each.values, box()[index(each.field)]);
    left *= is_one(each) ? share : 1 - share;
  }
  return left;
}

void Cell::match(const Match& match, const PacketAtHook& packet) {
  for (const Narrowing& each : of(match, packet)) narrow(each);
}

// The one that leaves most: often what was asked before.
void Cell::no_match(std::span<const Match* const> failing, const PacketAtHook& packet) {
  Narrowings best;
  double most = -1;
  for (const Match* each : failing) {
    Narrowings narrowings = of(*each, packet);
    const double left = failing.size() == 1 ? 1 : left_by(narrowings);
    if (left > most) {
      best = std::move(narrowings);
      most = left;
    }
    if (most == 1) break;
  }
  for (const Narrowing& each : best) narrow(each);
}

void Cell::of_address(Narrowings& result, const Address& value, Sets::Id values) {
  if (value == packet_.destination) result.push_back({Field::destination, values});
  if (value == packet_.source) result.push_back({Field::source, values});
}

void Cell::address(const Address& value, std::span<const AddressRange> ranges) {
  Narrowings narrowings;
  if (value == packet_.destination || value == packet_.source)
    of_address(narrowings, value, sets_.of(intervals_of(ranges)));
  for (const Narrowing& each : narrowings) narrow(each);
}

Sets::Id Cell::with_ports() { return sets_.of({{tcp, udp}}); }
void Cell::has_ports() { narrow({Field::protocol, with_ports()}); }
void Cell::protocol() { narrow({Field::protocol, sets_.single(point_[index(Field::protocol)])}); }
void Cell::interface() { narrow({Field::interface, sets_.single(point_[index(Field::interface)])}); }
void Cell::source() { narrow({Field::source, sets_.single(by_kernel)}); }
void Cell::mark() { narrow({Field::mark, sets_.single(point_[index(Field::mark)])}); }
void Cell::mark(std::uint32_t now, std::uint32_t value, std::uint32_t mask) {
  narrow({Field::mark, marks(now, value, mask)});
}

// Those of which the answer is yes; if it was changed, the packet's own alone.
Sets::Id Cell::marks(std::uint32_t now, std::uint32_t value, std::uint32_t mask) {
  if (now != packet_.mark) return sets_.single(point_[index(Field::mark)]);
  Intervals all;
  for (std::size_t i = 0; i < universe_.marks.size(); ++i) {
    if ((universe_.marks[i].example & mask) == value) all.push_back({i, i});
  }
  return sets_.of(normal(std::move(all)));
}

// Those that the match names, whether it is negated or not.
Sets::Id Cell::set_of(const Match& match) {
  const auto [found, added] = known_.try_emplace(&match, Sets::empty);
  if (!added) return found->second;
  if (const auto* address = std::get_if<AddressMatch>(&match)) found->second = sets_.of(intervals_of(address->ranges));
  if (const auto* set = std::get_if<SetMatch>(&match)) found->second = sets_.of(intervals_of(set->members.value()));
  if (const auto* ports = std::get_if<PortMatch>(&match)) found->second = sets_.of(intervals_of(ports->ports));
  if (const auto* owner = std::get_if<OwnerMatch>(&match)) found->second = sets_.of(intervals_of(owner->ids));
  return found->second;
}

// What truth() reads of the packet, match by match.
struct Cell::Asked {
  Cell& cell;
  const Match& match;
  const PacketAtHook& packet;
  Narrowings result{};

  [[nodiscard]] Sets::Id own(Field field) const { return cell.sets_.single(cell.point_[index(field)]); }

  void operator()(const InterfaceMatch& m) {
    const std::string& name = m.direction == InterfaceDirection::in ? packet.in : packet.out;
    if (!name.empty() && name == cell.packet_.interface) result.push_back({Field::interface, own(Field::interface)});
  }
  void operator()(const AddressMatch& m) { within(m.end, m.ranges); }
  void operator()(const SetMatch& m) {
    if (m.members) within(m.end, *m.members);
  }
  void within(End end, const std::vector<AddressRange>& ranges) {
    const Address& address = end == End::source ? packet.source.address : packet.destination.address;
    if (!ranges.empty() && ranges.front().family() != address.family) return;
    if (end == End::source && !packet.source_known) return;
    if (address == cell.packet_.destination || address == cell.packet_.source)
      cell.of_address(result, address, cell.set_of(match));
  }
  void operator()(const ProtocolMatch& m) {
    const bool is_one =
        m.protocol == Protocol::tcp || m.protocol == Protocol::udp ||
        m.protocol == (cell.packet_.destination->family == Family::ipv4 ? Protocol::icmp : Protocol::icmpv6);
    if (!is_one) return;
    const Value which = m.protocol == Protocol::tcp ? tcp : m.protocol == Protocol::udp ? udp : icmp;
    result.push_back({Field::protocol, cell.sets_.single(which)});
  }
  void operator()(const PortMatch& m) {
    result.push_back({Field::protocol, cell.with_ports()});
    if (packet.protocol != Protocol::tcp && packet.protocol != Protocol::udp) return;
    const std::optional<std::uint16_t>& port = (m.end == End::source ? packet.source : packet.destination).port;
    const Sets::Id values = port ? cell.set_of(match) : cell.sets_.single(by_kernel);
    if (port == cell.packet_.destination_port) result.push_back({Field::destination_port, values});
    if (port == cell.packet_.source_port) {
      result.push_back({Field::source_port, values});
      if (port) result.push_back({Field::source_port, cell.sets_.single(by_kernel)});
    }
  }
  void operator()(const OwnerMatch& m) {
    if (packet.owner_known && packet.owner)
      result.push_back({m.kind == OwnerKind::uid ? Field::uid : Field::gid, cell.set_of(match)});
  }
  void operator()(const SocketMatch&) {}  // of the way, which tells whether a process sends it
  void operator()(const CgroupMatch& m) {
    if (!packet.owner_known || !packet.owner || m.path.empty()) return;
    Intervals within;
    for (std::size_t i = 0; i < cell.universe_.cgroups.size(); ++i) {
      if (is_within_cgroup(cell.universe_.cgroups[i], m.path)) within.push_back({i, i});
    }
    result.push_back({Field::cgroup, cell.sets_.of(normal(std::move(within)))});
  }
  void operator()(const ConntrackStateMatch&) {}  // of the state, which all share
  void operator()(const ConntrackDirectionMatch&) {}
  void operator()(const MarkMatch& m) { result.push_back({Field::mark, cell.marks(packet.mark, m.value, m.mask)}); }
  void operator()(const ConnmarkMatch&) {}  // the packet's own mark, if it was saved: that was asked then
  void operator()(const CommentMatch&) {}
  void operator()(const UnknownMatch&) {}
};

Cell::Narrowings Cell::of(const Match& match, const PacketAtHook& packet) {
  Asked asked{*this, match, packet};
  std::visit(asked, match);
  return std::move(asked.result);
}

}  // namespace sidetrack::space
