// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/cell.h"

#include <algorithm>

#include "walk/forks.h"
#include "walk/in_flight.h"

namespace sidetrack::space {
namespace {

constexpr std::size_t few_intervals = 32;  // so many are made anew sooner than they are kept in mind

}  // namespace

Cell::Cell(const Universe& universe, Sets& sets, Diagrams& diagrams, ChainPaths& paths, Known& known, KnownSteps& steps,
           States& states, const Point& point, const Packet& packet, States::Number target)
    : universe_(universe),
      sets_(sets),
      diagrams_(diagrams),
      paths_(paths),
      known_(known),
      steps_(steps),
      states_(states),
      target_(target),
      point_(point),
      packet_(packet),
      at_{target == States::start} {
  const Family family = packet_.destination->family;
  for (std::size_t i = 0; i < field_count; ++i) whole_[i] = diagrams_.domain(i, family);
  for (const Field field : {Field::way, Field::family, Field::state})
    whole_[index(field)] = sets_.single(point_[index(field)]);
  Leg& first = legs_.emplace_back();
  first.box = whole_;
  first.decided = true;
}

void Cell::add_leg(States::Number from, const Checkpoint& checkpoint) {
  Leg& leg = legs_.emplace_back();
  leg.from = from;
  leg.box = whole_;
  leg.steps = checkpoint.trace.steps.size();
  leg.decided = checkpoint.decided;
}

bool Cell::checkpoint(const Checkpoint& checkpoint) {
  exclude_all();
  // All that was there comes here: the state is the same as that.
  if (at_.is_past_target && !at_.has_asked && !checkpoint.forks.any()) return true;
  const States::Number state = states_.of(checkpoint.state);
  if (!at_.is_past_target) {
    if (state != target_) return checkpoint.forks.repeats() || searched_.insert(state).second;
    at_.is_past_target = true;
    checkpoint.forks.keep();
    if (legs_.front().from == States::start) {
      legs_.clear();
      add_leg(state, checkpoint);
    }
    return true;
  }
  const Leg& before = legs_[at_.leg];
  const bool is_left_alone = checkpoint.left_alone && *checkpoint.left_alone >= before.steps;
  const Step* left_alone = is_left_alone ? steps_.of(checkpoint.trace.steps[*checkpoint.left_alone]) : nullptr;
  if (checkpoint.forks.any()) {
    ways_.push_back({state, left_alone, checkpoint.forks.taken()});
    return false;
  }
  at_.has_asked = false;
  ++at_.leg;
  if (at_.leg == legs_.size()) {
    legs_.back().left_alone = left_alone;
    add_leg(state, checkpoint);
  }
  return diagrams_.at(states_.done(state), point_) != Diagrams::yes;
}

const ChainPath* Cell::path(const BaseChain& base, ChainIndex& chains, const WalkState& packet) {
  const ChainPaths::Place here = paths_.place_of(base, chains, packet, packet_, point_);
  if (!at_.is_past_target) return here.root ? &paths_.path(here.leaf) : nullptr;
  at_.has_asked = true;
  Leg& leg = legs_[at_.leg];
  const auto lacks = [](const auto& all, const auto& one) { return std::ranges::find(all, one) == all.end(); };
  for (const ChainPaths::Difference& each : here.differences) {
    if (lacks(leg.differences, each)) leg.differences.push_back(each);
  }
  if (!here.root) return nullptr;
  if (const std::pair path(*here.root, here.leaf); lacks(leg.paths, path)) {
    leg.paths.insert(here.leaves > leg.most_leaves ? leg.paths.begin() : leg.paths.end(), path);
    leg.most_leaves = std::max(leg.most_leaves, here.leaves);
  }
  return &paths_.path(here.leaf);
}

void Cell::narrow(const Narrowing& narrowing) {
  if (!at_.is_past_target) return;
  const std::size_t field = index(narrowing.field);
  Sets::Id& now = box()[field];
  // By all packets of the leg: walks before this one may have narrowed it.
  if (!at_.has_asked) {
    const Sets::Id all = whole_[field];
    at_.has_asked = all != (is_one(narrowing) ? sets_.intersection(all, narrowing.values)
                                              : sets_.difference(all, narrowing.values));
  }
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
  if (!at_.is_past_target) return;
  for (const Narrowing& each : of(match, packet)) narrow(each);
}

// The one that leaves most: often what was asked before.
void Cell::no_match(std::span<const Match* const> failing, const PacketAtHook& packet) {
  if (!at_.is_past_target) return;
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
  if (!at_.is_past_target) return;
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
void Cell::mark(std::uint32_t now, std::uint32_t own, std::uint32_t value, std::uint32_t mask) {
  const MarkChange made{own, now ^ (packet_.mark & own)};
  if ((own & mask) != 0) narrow({Field::mark, sets_.of(universe_.marks_with(made, value, mask))});
}

// What truth() reads of the packet, match by match.
class Cell::AskedOf : public Asked {
 public:
  AskedOf(Cell& cell, const Match& match, const PacketAtHook& packet) : cell_(cell), match_(match), packet_(packet) {}
  Narrowings take() { return std::move(result_); }

  void interface(InterfaceDirection direction, const std::string&) override {
    const std::string& name = direction == InterfaceDirection::in ? packet_.in : packet_.out;
    if (!name.empty() && name == cell_.packet_.interface) add(Field::interface, own(Field::interface));
  }
  void addresses(End end, const std::vector<AddressRange>& ranges) override {
    const Address& address = packet_.at(end).address;
    if (!ranges.empty() && ranges.front().family() != address.family) return;
    if (end == End::source && !packet_.source_known) return;
    if (address == cell_.packet_.destination || address == cell_.packet_.source)
      cell_.of_address(result_, address, values(ranges));
  }
  void address_type(const AddressTypeMatch& match) override {
    if (match.end == End::source && !packet_.source_known) return;
    for (const auto& answer : match.answers(packet_))
      cell_.of_address(result_, packet_.at(match.end).address, cell_.sets_.of(intervals_of(answer.ranges)));
  }
  void ends(const ConnectionMatch& match) override {
    for (const auto& [endpoint, ranges, ports] : match.questions(packet_)) {
      if (!ranges.empty()) cell_.of_address(result_, endpoint.address, cell_.sets_.of(intervals_of(ranges)));
      if (!ports.empty()) of_port(endpoint.port, cell_.sets_.of(intervals_of(ports)));
    }
  }
  void protocol(Protocol protocol) override {
    const Protocol icmp_of_family =
        cell_.packet_.destination->family == Family::ipv4 ? Protocol::icmp : Protocol::icmpv6;
    if (!sidetrack::has_ports(protocol) && protocol != icmp_of_family) return;
    const Value which = protocol == Protocol::tcp ? tcp : protocol == Protocol::udp ? udp : icmp;
    add(Field::protocol, cell_.sets_.single(which));
  }
  void ports(End end, const std::vector<PortRange>& ports) override { of_port(packet_.at(end).port, values(ports)); }
  void ids(OwnerKind kind, const std::vector<IdRange>& ids) override {
    if (packet_.owner_known && packet_.owner) add(kind == OwnerKind::uid ? Field::uid : Field::gid, values(ids));
  }
  void socket() override {}  // of the way, which tells whether a process sends it
  void cgroup(const std::string& path) override {
    if (!packet_.owner_known || !packet_.owner || path.empty()) return;
    add(Field::cgroup, cell_.sets_.of(cell_.universe_.cgroups_within(path)));
  }
  void mark(std::uint32_t value, std::uint32_t mask) override {
    const MarkChange made = packet_.mark_change(cell_.packet_.mark);
    if ((made.own & mask) != 0) add(Field::mark, cell_.sets_.of(cell_.universe_.marks_with(made, value, mask)));
  }
  void connmark(std::uint32_t, std::uint32_t) override {
  }                              // the packet's own mark, if it was saved: that was asked then
  void connection() override {}  // of the state, which all share

 private:
  void of_port(const std::optional<std::uint16_t>& port, Sets::Id ports) {
    add(Field::protocol, cell_.with_ports());
    if (!sidetrack::has_ports(packet_.protocol)) return;
    const Sets::Id asked = port ? ports : cell_.sets_.single(by_kernel);
    if (port == cell_.packet_.destination_port) add(Field::destination_port, asked);
    if (port == cell_.packet_.source_port) {
      add(Field::source_port, asked);
      if (port) add(Field::source_port, cell_.sets_.single(by_kernel));
    }
  }
  [[nodiscard]] Sets::Id own(Field field) const { return cell_.sets_.single(cell_.point_[index(field)]); }
  void add(Field field, Sets::Id values) { result_.push_back({field, values}); }
  // Those that the match names, whether it is negated or not.
  template <typename List>
  Sets::Id values(const List& list) {
    const auto [found, added] = cell_.known_.try_emplace(&match_, Sets::empty);
    if (added) found->second = cell_.sets_.of(intervals_of(list));
    return found->second;
  }

  Cell& cell_;
  const Match& match_;
  const PacketAtHook& packet_;
  Narrowings result_;
};

Cell::Narrowings Cell::of(const Match& match, const PacketAtHook& packet) {
  AskedOf asked(*this, match, packet);
  ask(match, asked);
  return asked.take();
}

}  // namespace sidetrack::space
