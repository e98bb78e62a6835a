// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <stdexcept>
#include <utility>

#include "model/error.h"
#include "rule/iptables.h"
#include "space/meeting.h"
#include "walk/explain.h"
#include "walk/hook_calls.h"
#include "walk/route.h"

namespace sidetrack::space {
namespace {

// Returns the step with the rule of the other path at the same place, or the same one if it is no rule of this path.
const Step* in_place_of(const Step& step, const ChainPath& path, const ChainPath& other, KnownSteps& known) {
  const auto place = std::ranges::find(path.rules.rbegin(), path.rules.rend(), step.live, &RuleInChain::rule);
  if (place == path.rules.rend()) return &step;
  const RuleInChain& there = other.rules[static_cast<std::size_t>(path.rules.rend() - place - 1)];
  Step made = step;
  made.live = there.rule;
  made.in = there.in;
  made.number = there.rule->number;
  return known.of(made);
}

std::vector<Side> with_joined_rules(std::vector<Side> sides, JoinedRules& rules) {
  for (Side& side : sides) side.live = joined(std::move(side.live), rules);
  return sides;
}

// Makes all that asks for a mark unknown. Each such rule doubles the ways that a packet may go: of very many nothing
// would be found out.
void forget_marks(Side& side) {
  constexpr std::size_t most_rules = 100;
  std::size_t rules = 0;
  for (Live& live : side.live) {
    for (LiveChain& chain : live.chains) {
      for (LiveRule& rule : chain.rules) {
        const auto asks = [](const Match& match) { return (reads(match) & (facts::mark | facts::connmark)) != 0; };
        if (std::ranges::any_of(rule.rule.matches, asks)) ++rules;
        for (Match& match : rule.rule.matches) {
          if (asks(match)) match = UnknownMatch{iptables_words(match)};
        }
      }
    }
  }
  if (rules > most_rules) {
    throw TooManyRegions(
        ExitCode::failed,
        fmt::format("{} rules ask for marks, more than the analysis of all packets tells apart", rules),
        "ask for one packet: sidetrack explain");
  }
  for (PolicyRule& rule : side.pod.rules) {
    if (rule.mask == 0) continue;
    rule.more += fmt::format("{}fwmark {:#x}/{:#x}", rule.more.empty() ? "" : " ", rule.mark, rule.mask);
    rule.mark = rule.mask = 0;
  }
}

// Tells whether other hosts may send to an address of lo, as to one that several pods have: not loopback, nor ::6,
// which a plan adds.
bool is_for_others(const Address& own) { return !own.is_loopback() && value_of(own) >= 256; }

// Returns one of these values that people would choose: the first port or id, the first host of a network.
Value usual_of(const Interval& all, Field field) {
  const Value others = all.last - all.first;
  const bool is_address = field == Field::destination || field == Field::source;
  if (field == Field::mark || (is_address && all.first < 256)) return all.first + others / 2;
  // Fields of one kind get other values, so that they are not taken for each other.
  Value more = field == Field::source || field == Field::source_port ? 1 : 0;
  if (is_address && all.first % 256 == 0) ++more;
  return all.first + std::min(more, others);
}

}  // namespace

// What becomes of packets of one path through the chain that is asked first.
struct Regions::Passing {
  std::optional<Leaf> end;           // there
  const Step* left_alone = nullptr;  // by that rule, if they go on
  bool inherits = false;             // the reason of those before, if none is found further on
  friend auto operator<=>(const Passing&, const Passing&) = default;
  // Returns what packets of the leg pass that go on.
  [[nodiscard]] static Passing onward(const Leg& leg, const Step* left_alone) {
    return {{}, left_alone, left_alone == nullptr && !leg.decided};
  }
  // Returns what leaves each leaf as it is.
  [[nodiscard]] static Passing nothing() { return {{}, nullptr, true}; }
  // Returns the same by another path than that, by which packets go on alike.
  [[nodiscard]] Passing by(const ChainPath& path, const ChainPath& other, Regions& regions) const {
    Passing made = *this;
    if (left_alone != nullptr) made.left_alone = in_place_of(*left_alone, path, other, regions.steps_);
    if (!end) return made;
    const Decision& decision = regions.decision(*end);
    if (decision.step != nullptr && !decision.inherited)
      made.end = regions.leaf_of(decision.ending, in_place_of(*decision.step, path, other, regions.steps_), false);
    return made;
  }
};

// A way that packets may go from a state on.
struct Regions::Branch {
  std::optional<States::Number> next;  // nothing: they end
  Passing passing;
  friend auto operator<=>(const Branch&, const Branch&) = default;
};

struct Regions::Followed {
  Point point{};
  std::vector<Leg> legs;
  std::vector<Branch> branches;  // of the last leg; none: such packets were followed from there on
  Choice choice;                 // of several: which one it is, is unknown
};

// Where packets go from one state on, by the diagram of the chain that is asked first, if one is.
struct Regions::Transition {
  Node by = Diagrams::nothing();
  std::vector<Diagrams::Part> parts;
  struct Onward {
    std::vector<Branch> branches;
    Choice choice;
  };
  std::vector<Onward> onward;  // of the parts
  Diagrams::PartOf part_of;
  std::vector<Passing> passing;  // of the leaves in part_of; where there are several branches, each has its own
  [[nodiscard]] std::size_t bytes() const {
    return sizeof *this + parts.size() * (sizeof(Diagrams::Part) + sizeof(Onward) + sizeof(Branch)) +
           part_of.size() * (sizeof part_of.front() + sizeof(Passing));
  }
};

struct Regions::State {
  Node pending = Diagrams::whole(no);  // packets that come there and were not followed from there on
  Node further = Diagrams::nothing();  // what becomes of those that were, as far as it was worked out
  bool is_new = false;                 // more were followed since then
  std::size_t worked_out = 0;          // in which round it was looked at last
  bool has_changed = false;            // then
  std::vector<Transition> transitions;
  std::vector<std::shared_ptr<const Followed>> followed;  // packets that were, as it happened
};

struct Regions::Pod {
  const PodView view;
  RulesByFamily rules;
  States states;
  std::deque<State> about{1};  // by state
  std::size_t round = 0;
  std::map<std::size_t, Node>
      may_differ;  // by another side: of the packets followed, those that may end otherwise there

  Pod(PodView of, const std::vector<Live>& live) : view(std::move(of)), rules(live) {}
  State& at(States::Number number) {
    if (about.size() < states.size()) about.resize(states.size());
    return about[number];
  }
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
    : sides_(with_joined_rules(std::move(sides), joined_rules_)),
      universe_(universe_of(sides_)),
      unmarked_(universe_.mark_class(0)),
      diagrams_(universe_, sets_),
      paths_(universe_, sets_, diagrams_),
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
  for (const Side& side : sides_) {
    auto& hops = pods_.emplace_back();
    for (PodView& view : by_each_hop(side.pod)) hops.push_back(std::make_unique<Pod>(std::move(view), side.live));
  }
  is_paired_.push_back(false);
  for (std::size_t other = 1; other < sides_.size(); ++other)
    is_paired_.push_back(pair(pods_.front().front()->rules, other, pods_[other].front()->rules));
}

Regions::~Regions() = default;

Leaf Regions::leaf_of(Ending ending, const Step* step, bool inherited) {
  const auto made = static_cast<Leaf>(decisions_.size());
  std::vector<Leaf>& endings = by_hash_[hash_of(ending)];
  auto like = std::ranges::find_if(endings, [&](Leaf leaf) { return decisions_[leaf].ending == ending; });
  if (like == endings.end()) like = endings.insert(like, made);
  const auto [known, is_new] = by_reason_.try_emplace({*like, ending.ways, step, inherited}, made);
  if (!is_new) return known->second;
  decisions_.push_back({std::move(ending), step, inherited});
  endings_.push_back(*like);
  return made;
}

// Of the last leg.
Leaf Regions::end_of(const Leg& leg, const std::vector<Possibility>& all) {
  const Trace& trace = all.front().trace;
  const Step* step = trace.decisive.empty() ? nullptr : &trace.steps[trace.decisive.back()];
  if (step != nullptr && step->kind < Step::Kind::passed) step = nullptr;
  const bool inherited = !leg.decided && (step == nullptr || trace.decisive.back() < leg.steps);
  return leaf_of(ending_of(all), inherited || step == nullptr ? nullptr : steps_.of(*step), inherited);
}

// Returns the ways that a packet may go from the last leg on; all that end in it are one.
std::vector<Regions::Branch> Regions::branches_of(const Leg& leg, std::span<const Way> ways,
                                                  const std::vector<Possibility>& all) {
  std::vector<Possibility> ended;
  std::ranges::copy_if(all, std::back_inserter(ended), [](const Possibility& one) { return !one.known; });
  std::vector<Branch> made;
  auto way = ways.begin();
  for (const Possibility& one : all) {
    Branch branch;
    if (one.known) {
      branch = {way->next, Passing::onward(leg, way->left_alone)};
      ++way;
    }
    if (std::ranges::find(made, branch.next, &Branch::next) != made.end()) continue;
    if (!one.known) branch.passing.end = end_of(leg, ended);
    made.push_back(branch);
  }
  return made;
}

Regions::Followed Regions::follow(const Point& point, Pod& pod, States::Number target) {
  ++followed_;
  // Those of icmp too, for whose nobody asks: so it comes to the states of others.
  const Packet packet = universe_.packet_with_ports(point);
  Cell cell(universe_, sets_, diagrams_, paths_, known_, steps_, pod.states, point, packet, target);
  const PodView& view = pod.view;
  const auto way = packet.direction;
  Intervals possible;  // interfaces
  for (Value i = 0; i < universe_.interfaces.size(); ++i) {
    const std::string& name = universe_.interfaces[static_cast<std::size_t>(i)];
    const bool is_there = name.empty() || view.interface(name) != nullptr;
    if (is_there && universe_.can_be(way, i)) possible.push_back({i, i});
  }
  const Sets::Id interfaces = sets_.of(normal(std::move(possible)));
  cell.interface(interfaces);
  const auto none = [&] { return Followed{point, cell.take_legs(), {{{}, {no_such_packet}}}, {}}; };
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
  // No address stands for one of the pod.
  const bool is_to_itself = !is_any(*packet.destination, &cell) && is_local(view, *packet.destination, &cell);
  if (way != Direction::in && is_to_itself != (way == Direction::lo)) {
    if (way == Direction::lo) return none();
    const Value bound = point[index(Field::interface)];
    const Sets::Id no_device = sets_.single(unbound);
    cell.interface(bound == unbound ? no_device : sets_.difference(interfaces, no_device));
    if (bound == unbound) return none();
  }
  const auto all =
      possibilities(packet, view, pod.rules.of(packet.destination->family), cell, pod.states.choices(target));
  Followed followed{point, cell.take_legs(), {}, {}};
  for (std::size_t i = 1; i < followed.legs.size(); ++i) {
    const States::Number from = followed.legs[i - 1].from;
    pod.states.connect(from, followed.legs[i].from, pod.states.choices(from));
  }
  if (all.empty()) throw std::logic_error("a packet left the way of those that answer alike");
  const bool was_followed = cell.ways().empty() && all.front().known;
  if (was_followed) return followed;
  const Leg& last = followed.legs.back();
  for (const Way& each : cell.ways()) pod.states.connect(last.from, each.next, each.choices);
  followed.branches = branches_of(last, cell.ways(), all);
  if (followed.branches.size() > 1) followed.choice = choice_of(all);
  return followed;
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
      if (interface.name != "lo" || is_for_others(one.address)) add(own, AddressRange::single(one.address));
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
  const Sets::Id own_hosts = sets_.intersection(hosts, set(local));
  switch (way) {
    case Direction::out:
      at(Field::interface) =
          usual;  // a bound socket takes no route to lo: what is redirected to lo leaves, and is lost
      at(Field::source) = sets_.set_union(usual, set(own));
      at(Field::destination) = others;
      break;
    case Direction::lo:
      at(Field::interface) = usual;
      at(Field::source) = sets_.set_union(usual, own_hosts);
      at(Field::destination) = own_hosts;
      break;
    case Direction::in:
      at(Field::interface) = sets_.difference(set(ways_out), usual);
      at(Field::source) = sets_.set_union(usual, others);
      at(Field::destination) = set(own);
      at(Field::mark) = sets_.single(unmarked_);
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
      Sets::Id& states = box[index(Field::state)];  // by their places in connection_states
      if (scope == Scope::connections) states = sets_.of({{0, 1}});
      if (scope == Scope::invalid) states = sets_.single(2);
    }
  }
  return outside(boxes);
}

void Regions::require_room(const Pod& pod) const {
  const std::size_t bytes = diagrams_.bytes() + sets_.bytes() + pod.states.bytes() + bytes_of_transitions_;
  constexpr std::size_t rules_like_a_packet = 256;  // asking so many takes as long as following a packet
  if (followed_ + pod.rules.asked() / rules_like_a_packet >= most_followed_ || bytes > most_bytes)
    refuse_more_regions();
}

// Packets of the region are followed from state to state, all that come to one at once if they can be. States come in
// the order in which packets come to them; one that is met again sooner than by others is looked at again.
void Regions::follow_all(Pod& pod, Node region, const Box& whole) {
  using Ranked = std::pair<std::size_t, States::Number>;  // how many states are before it
  std::priority_queue<Ranked, std::vector<Ranked>, std::greater<>> queue;
  const auto add = [&](States::Number state, std::size_t rank, Node more) {
    Node& pending = pod.at(state).pending;
    if (pending == Diagrams::whole(no)) queue.emplace(rank, state);
    pending = diagrams_.any_of(pending, more);
  };
  add(States::start, 0, region);
  while (!queue.empty()) {
    const auto [rank, state] = queue.top();
    queue.pop();
    Node open = diagrams_.without(std::exchange(pod.at(state).pending, Diagrams::whole(no)), pod.states.done(state));
    if (open == Diagrams::whole(no)) continue;
    Node& done = pod.states.done(state);
    const Node all = diagrams_.any_of(done, open);
    while (open != Diagrams::whole(no)) {
      const Transition& made = pod.at(state).transitions.emplace_back(transition(pod, state, open, whole));
      bytes_of_transitions_ += made.bytes();
      const std::vector<Node> parts = diagrams_.split(open, made.by, made.parts, made.part_of, family_of(sets_, whole));
      const Node before = open;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        for (const Branch& branch : made.onward[i].branches) {
          if (branch.next) add(*branch.next, rank + 1, parts[i]);
        }
      }
      open = diagrams_.without(open, diagrams_.any_of(parts));
      if (open == before) throw std::logic_error("a packet was followed and nothing is known of it");
    }
    pod.states.done(state) = all;
    pod.at(state).followed.clear();
    pod.at(state).is_new = true;
  }
}

// Follows one packet for each path through the chain that comes next, as far as packets of the region have them, or for
// each of those that lead alike.
Regions::Transition Regions::transition(Pod& pod, States::Number state, Node open, const Box& whole) {
  Transition made;
  std::map<std::tuple<Node, std::size_t, std::vector<Branch>>, std::uint32_t> numbers;
  std::vector<ChainPaths::Difference> differences;
  // `instead`: the path of other packets, which go on alike.
  const auto add = [&](const Followed& followed, std::vector<Leg>::const_iterator leg,
                       std::optional<Leaf> instead = {}) {
    for (const ChainPaths::Difference& each : leg->differences) {
      if (std::ranges::find(differences, each) != differences.end()) continue;
      differences.push_back(each);
      Node& all = pod.may_differ.try_emplace(each.side, Diagrams::whole(no)).first->second;
      all = diagrams_.any_of(all, diagrams_.all_of(open, each.packets));
    }
    Leaf by = uncovered;
    Node inside = diagrams_.of_box(leg->box, Diagrams::whole(yes), Diagrams::whole(no));
    for (auto path = leg->paths.begin(); path != leg->paths.end(); ++path) {
      if (path == leg->paths.begin()) {
        by = path->second;
      } else {
        inside = diagrams_.combined(inside, path->first,
                                    [&](Leaf in, Leaf there) { return in == yes && there == path->second ? yes : no; });
      }
    }
    std::vector<Branch> branches = followed.branches;
    if (leg + 1 != followed.legs.end()) branches = {{(leg + 1)->from, Passing::onward(*leg, leg->left_alone)}};
    if (instead) {
      for (Branch& branch : branches) branch.passing = branch.passing.by(paths_.path(by), paths_.path(*instead), *this);
    }
    by = instead.value_or(by);
    const auto place = Diagrams::place_in(made.part_of, by);
    if (place != made.part_of.end() && place->first == by) return;
    Passing passing = Passing::nothing();
    if (branches.size() == 1) std::swap(passing, branches.front().passing);
    made.passing.insert(made.passing.begin() + (place - made.part_of.begin()), passing);
    const auto [number, is_new] = numbers.try_emplace({inside, followed.choice.ways, branches}, made.parts.size());
    made.part_of.emplace(place, by, number->second);
    if (!is_new) return;
    made.parts.push_back({inside, Diagrams::whole(yes)});
    made.onward.push_back({std::move(branches), followed.choice});
  };
  const auto leg_of = [&](const Followed& followed) {
    const auto leg = std::ranges::find(followed.legs, state, &Leg::from);
    if (leg == followed.legs.end()) throw std::logic_error("a packet left the way of those that answer alike");
    return leg;
  };
  using Shared = std::shared_ptr<const Followed>;
  const auto follow_one = [&](const Box& box) {
    require_room(pod);
    auto followed = std::make_shared<const Followed>(follow(example(box), pod, state));
    for (auto leg = leg_of(*followed) + 1; leg < followed->legs.end(); ++leg) {
      if (leg + 1 < followed->legs.end() || !followed->branches.empty()) pod.at(leg->from).followed.push_back(followed);
    }
    return Shared(followed);
  };
  const std::vector<Shared> before = pod.at(state).followed;
  const auto known =
      std::ranges::find_if(before, [&](const Shared& one) { return diagrams_.at(open, one->point) == yes; });
  const Shared first =
      known != before.end()
          ? *known
          : follow_one(diagrams_.open_by(Diagrams::nothing(), open, Diagrams::nothing(), whole).at(uncovered));
  const auto leg = leg_of(*first);
  add(*first, leg);
  if (leg->paths.empty()) return made;
  const auto [root, leaf] = leg->paths.front();
  made.by = root;
  std::map<Leaf, Shared> by_leaf;
  for (const Shared& one : before) {
    if (diagrams_.at(open, one->point) == yes) by_leaf.emplace(diagrams_.at(root, one->point), one);
  }
  std::vector<std::pair<Leaf, Shared>> examples;  // of paths that lead to different places
  const auto keep = [&](Leaf of, const Shared& followed) {
    if (leg_of(*followed)->paths.size() == 1 && leads_alike(paths_.path(of), paths_.path(of)))
      examples.emplace_back(of, followed);
  };
  keep(leaf, first);
  for (const auto& [other, box] : diagrams_.open_by(Diagrams::nothing(), open, root, whole)) {
    if (other == leaf || other == uncovered) continue;
    const ChainPath& path = paths_.path(other);
    const auto found = by_leaf.find(other);
    const auto like = std::ranges::find_if(
        examples, [&](const auto& example) { return leads_alike(paths_.path(example.first), path); });
    if (found == by_leaf.end() && like != examples.end()) {
      add(*like->second, leg_of(*like->second), other);
      continue;
    }
    const Shared followed = found != by_leaf.end() ? found->second : follow_one(box);
    const auto of_state = leg_of(*followed);
    if (of_state->paths.empty() || of_state->paths.front().first != root) continue;
    add(*followed, of_state);
    if (like == examples.end()) keep(other, followed);
  }
  return made;
}

// What becomes of packets from the state on. Returns whether it is another than it was in the round before.
bool Regions::work_out(Pod& pod, States::Number number) {
  State& state = pod.at(number);
  if (state.worked_out == pod.round) return state.has_changed;
  state.worked_out = pod.round;
  bool is_other = std::exchange(state.is_new, false);
  for (const Transition& transition : state.transitions) {
    for (const auto& [branches, choice] : transition.onward) {
      for (const Branch& branch : branches) {
        if (branch.next && work_out(pod, *branch.next)) is_other = true;
      }
    }
  }
  state.has_changed = is_other;
  if (!is_other) return false;
  state.further = Diagrams::nothing();
  for (Transition& transition : state.transitions) {
    for (std::size_t i = 0; i < transition.parts.size(); ++i) {
      const auto& [branches, choice] = transition.onward[i];
      if (branches.size() > 1) {
        transition.parts[i].other = either(pod, branches, choice);
      } else if (branches.front().next) {
        transition.parts[i].other = further(pod, branches.front());
      }
    }
    const auto passing_of = [&](Leaf by) -> const Passing& {
      const auto place = Diagrams::place_in(transition.part_of, by) - transition.part_of.begin();
      return transition.passing[static_cast<std::size_t>(place)];
    };
    const Diagrams::Change change{[&](Leaf by, Leaf leaf) {
                                    const Passing& passing = passing_of(by);
                                    return passing.end ? *passing.end : passed(leaf, passing);
                                  },
                                  [&](Leaf by) { return !passing_of(by).end && passing_of(by).inherits; }};
    state.further = diagrams_.after(state.further, transition.by, transition.parts, transition.part_of, change);
  }
  return true;
}

// With the rule that left such packets alone, if nothing decides about them further on.
Leaf Regions::passed(Leaf leaf, const Passing& passing) {
  const Decision& decision = decisions_[leaf];
  if (!decision.inherited || passing.inherits || passing.end) return leaf;
  return leaf_of(decision.ending, passing.left_alone, false);
}

Regions::Node Regions::further(Pod& pod, const Branch& branch) {
  return branch.next ? pod.at(*branch.next).further : Diagrams::whole(branch.passing.end.value_or(uncovered));
}

// Returns what becomes of packets that go on by one of these, each with what it passes.
Regions::Node Regions::either(Pod& pod, std::span<const Branch> branches, const Choice& choice) {
  Passing first = branches.front().passing;
  Node made = further(pod, branches.front());
  for (const Branch& branch : branches.subspan(1)) {
    Memo known;
    made = diagrams_.combined(made, further(pod, branch), [&](Leaf one, Leaf other) {
      const std::uint64_t key = std::uint64_t{one} << 32 | other;
      if (const auto* found = known.find(key)) return *found;
      const Leaf leaf = either(passed(one, first), passed(other, branch.passing), choice);
      known.add(key, leaf);
      return leaf;
    });
    first = Passing::nothing();
  }
  return made;
}

// Returns the decision about packets that end in one of two ways.
Leaf Regions::either(Leaf one, Leaf other, const Choice& choice) {
  if (one == other) return one;
  if (one == uncovered || other == uncovered) return uncovered;
  const Decision& decision = decisions_[one];
  const Ending& end = decisions_[other].ending;
  if (by_ending(one) == by_ending(other) && decision.ending.ways == end.ways) return one;
  return leaf_of(either_of(decision.ending, end, choice), decision.step, decision.inherited);
}

// Returns an unknown ending where packets end differently by their next hops. `one`: by all pods before `hop`; `other`:
// by that pod.
Leaf Regions::either(std::size_t side, std::size_t hop, Leaf one, Leaf other) {
  if (by_ending(one) == by_ending(other)) return one;
  const Pods all = pods_[side];
  Ending made;
  made.kind = Outcome::Kind::unknown;
  const auto add = [&](Leaf leaf, Pods pods) {
    const Ending& ending = decisions_[leaf].ending;
    made.ways = made.ways * 31 + (ending.ways ^ hash_of(ending));
    const std::vector<Ending> places = ending.either.empty() ? std::vector{ending} : ending.either;
    for (Ending place : places) {
      place.interface = of_these_hops(place.interface, pods);
      made.either.push_back(std::move(place));
    }
  };
  add(one, all.first(hop));
  add(other, all.subspan(hop, 1));
  std::ranges::sort(made.either, {}, [](const Ending& place) { return ending_text(place); });
  for (const Route& route : sides_[side].pod.routes) {
    if (!route.other_devices.empty()) made.unknowns.push_back(fmt::format("the next hop by `{}`", ip_words(route)));
  }
  return leaf_of(std::move(made), nullptr, false);
}

// Returns those interfaces of a route with several next hops, "eth0 or net1", which these pods take.
std::string Regions::of_these_hops(const std::string& ways, Pods pods) {
  for (std::size_t i = 0; i < pods.front()->view.routes.size(); ++i) {
    const Route& route = pods.front()->view.routes[i];
    if (joined_ways(route.devices()) != ways) continue;
    std::vector<std::string> devices;
    for (const auto& pod : pods) {
      const std::string& device = pod->view.routes[i].device;
      if (std::ranges::find(devices, device) == devices.end()) devices.push_back(device);
    }
    return joined_ways(std::move(devices));
  }
  return ways;
}

// `outside`: no such packet, or uncovered.
Regions::Node Regions::completed(Node outside, std::size_t number) {
  if (!is_paired_[number]) return completed_by_hops(outside, number);
  const Node first = completed_by_hops(outside, 0);
  const bool is_same = std::ranges::equal(pods_.front(), pods_[number], [](const auto& one, const auto& other) {
    return find_same_neighbours(one->rules, other->view, other->rules);
  });
  if (!is_same) return completed_by_hops(outside, number);
  const Node differing = diagrams_.combined(outside, may_differ(number), [](Leaf out, Leaf may) {
    return out == uncovered && may == yes ? uncovered : no_such_packet;
  });
  return diagrams_.combined(completed_by_hops(differing, number), first,
                            [](Leaf other, Leaf same) { return other == no_such_packet ? same : other; });
}

// Returns the packets of those that were followed on the first side that may end otherwise on the other one.
Regions::Node Regions::may_differ(std::size_t other) {
  if (!is_paired_[other]) return Diagrams::whole(yes);
  Node made = Diagrams::whole(no);
  for (const auto& pod : pods_.front()) {
    if (const auto found = pod->may_differ.find(other); found != pod->may_differ.end())
      made = diagrams_.any_of(made, found->second);
  }
  return made;
}

Regions::Node Regions::completed_by_hops(Node outside, std::size_t number) {
  const Pods hops = pods_[number];
  Node made = completed(outside, *hops.front());
  for (std::size_t hop = 1; hop < hops.size(); ++hop) {
    made = diagrams_.combined(made, completed(outside, *hops[hop]),
                              [&](Leaf a, Leaf b) { return either(number, hop, a, b); });
  }
  return made;
}

Regions::Node Regions::completed(Node outside, Pod& pod) {
  const Node inside = diagrams_.mapped(outside, [](Leaf leaf) { return leaf == uncovered ? yes : no; });
  for (const Box& whole : wholes_) {
    const Node region = diagrams_.of_box(whole, Diagrams::whole(yes), Diagrams::whole(no));
    follow_all(pod, diagrams_.all_of(region, inside), whole);
  }
  ++pod.round;
  work_out(pod, States::start);
  return diagrams_.overlaid(outside, pod.at(States::start).further);
}

Regions::Node Regions::of(std::size_t number, Scope scope) {
  const PodView& pod = sides_[number].pod;
  return completed(scope == Scope::everything ? diagrams_.nothing() : outside_ordinary(pod, scope), number);
}

Regions::Node Regions::of(std::size_t number, std::span<const Box> boxes) { return completed(outside(boxes), number); }

bool Regions::end_alike(Leaf one, Leaf other) const {
  if (by_ending(one) != by_ending(other)) return false;
  const Ending& ending = decisions_[one].ending;
  if (ending.kind != Outcome::Kind::unknown) return true;
  if (ending.either.empty()) return std::ranges::equal(ending.unknowns, std::array{many_receivers});
  return universe_.marks_known && ending.ways == decisions_[other].ending.ways;
}

Leaf Regions::at(std::size_t number, const Point& point) {
  const Pods hops = pods_[number];
  Leaf made = uncovered;
  for (std::size_t hop = 0; hop < hops.size(); ++hop) {
    std::map<States::Number, Leaf> known;
    const Leaf leaf = at(*hops[hop], point, States::start, known);
    made = hop == 0 ? leaf : either(number, hop, made, leaf);
  }
  return made;
}

// Returns what becomes of the packet from that state on, by following it alone.
Leaf Regions::at(Pod& pod, const Point& point, States::Number from, std::map<States::Number, Leaf>& known) {
  if (const auto found = known.find(from); found != known.end()) return found->second;
  const Followed followed = follow(point, pod, from);
  Leaf leaf = uncovered;
  if (followed.branches.empty()) leaf = diagrams_.at(pod.at(followed.legs.back().from).further, point);
  for (const Branch& branch : followed.branches) {
    const Leaf end =
        branch.next ? passed(at(pod, point, *branch.next, known), branch.passing) : branch.passing.end.value();
    leaf = &branch == &followed.branches.front() ? end : either(leaf, end, followed.choice);
  }
  for (std::size_t i = followed.legs.size() - 1; i-- > 0;) {
    const Leg& leg = followed.legs[i];
    leaf = passed(leaf, Passing::onward(leg, leg.left_alone));
  }
  known.emplace(from, leaf);
  return leaf;
}

Regions::Node Regions::ordinary_part(Node root, const PodView& pod) {
  return diagrams_.combined(root, outside_ordinary(pod),
                            [](Leaf leaf, Leaf outside) { return outside == no_such_packet ? no_such_packet : leaf; });
}

void Regions::for_each(Node root, const std::function<void(const Box&, const Box&, Leaf)>& one) {
  for (const Box& whole : wholes_)
    diagrams_.for_each(root, whole, [&](const Box& box, Leaf leaf) { one(box, whole, leaf); });
}

LiveRule Regions::deciding_rule(std::size_t side, const Step& step, const Point& point) {
  LiveRule made = *step.live;
  made.number = step.number;
  const auto joined = joined_rules_.find(step.live);
  if (joined == joined_rules_.end()) return made;
  const Packet packet = universe_.packet_with_ports(point);
  Pod& pod = *pods_[side].front();
  Meeting meeting(paths_, packet, point, *step.live, joined->second);
  static_cast<void>(possibilities(packet, pod.view, pod.rules.of(packet.destination->family), meeting));
  made.number += static_cast<unsigned>(meeting.number());
  made.rule.matches[joined->second.place] = joined->second.each[meeting.number()];
  return made;
}

Point Regions::example(const Box& box) const {
  // A documentation address or loopback, an app's uid, a port of the web, no mark; else one of the largest interval.
  static const std::vector<Value> usual_ids{1000, 0};
  static const std::vector<Value> usual_ports{80, 8080};
  static const std::vector<Value> none{0};
  const Family family = family_of(sets_, box);
  const std::vector<Value> usual_addresses{
      value_of(*Address::parse(family == Family::ipv6 ? "2001:db8:ffff::1" : "198.51.100.1")),
      value_of(Address::loopback(family))};
  const std::vector<Value> usual_sources{
      by_kernel, value_of(*Address::parse(family == Family::ipv6 ? "2001:db8:ffff::2" : "203.0.113.1"))};
  Point point{};
  for (std::size_t i = 0; i < field_count; ++i) {
    const auto field = static_cast<Field>(i);
    std::vector<Value> usual;
    if (field == Field::uid || field == Field::gid) usual = usual_ids;
    if (field == Field::destination_port) usual = usual_ports;
    if (field == Field::destination) usual = usual_addresses;
    if (field == Field::source) usual = usual_sources;
    if (field == Field::source_port || field == Field::cgroup) usual = none;
    if (field == Field::mark) usual = {unmarked_};
    const auto found = std::ranges::find_if(usual, [&](Value value) { return sets_.contains(box[i], value); });
    if (found != usual.end()) {
      point[i] = *found;
      continue;
    }
    const std::span<const Interval> all = sets_.intervals(box[i]);
    const auto largest = std::ranges::max_element(all, {}, [](const Interval& one) { return one.last - one.first; });
    point[i] = field <= Field::interface || field == Field::cgroup ? all.front().first : usual_of(*largest, field);
  }
  return point;
}

}  // namespace sidetrack::space
