// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "model/error.h"
#include "model/list_text.h"
#include "model/printable.h"
#include "walk/forks.h"
#include "walk/hook_calls.h"
#include "walk/observer.h"
#include "walk/packet_walk.h"
#include "walk/route.h"
#include "walk/source_address.h"

namespace sidetrack {
namespace {

constexpr std::size_t after_too_many = 20;  // paths of each further packet

Outcome end_of(const Packet& asked, Outcome::Kind kind, std::string why, std::string_view subject = {}) {
  Outcome outcome;
  outcome.kind = kind;
  outcome.at = {*asked.destination, asked.destination_port};
  outcome.why = std::move(why);
  outcome.subject = subject;
  return outcome;
}

Outcome not_known(const Packet& asked, std::string why, std::string_view subject) {
  return end_of(asked, Outcome::Kind::unknown, std::move(why), subject);
}

Outcome too_many_paths(const Packet& asked, FamilyRules& rules) {
  return not_known(asked, fmt::format("where it ends: more than {} possible paths", rules.most_paths()), too_many_ways);
}

// ---- What is known without a walk

// Of broadcast and multicast. `asked`: the packet with all filled in.
std::optional<Outcome> not_followed(const Packet& asked, const PodView& pod, Observer* observer) {
  const Address& to = *asked.destination;
  const bool any = is_any(to, observer);
  const bool broadcast = is_broadcast(pod, to, observer);
  if (!any && !broadcast && !is_multicast(to, observer)) return {};
  if (observer != nullptr) observer->protocol();
  if (asked.direction != Direction::in && asked.protocol == Protocol::tcp) {
    return end_of(
        asked, Outcome::Kind::unroutable,
        fmt::format("no tcp connection to {}, a {} address", to.text(), broadcast ? "broadcast" : "multicast"));
  }
  return not_known(asked,
                   fmt::format("which hosts receive what is sent to {}, {}", to.text(),
                               any         ? "no address"
                               : broadcast ? "a broadcast address"
                                           : "a multicast address"),
                   std::string(many_receivers));
}

// A route by a rule gives such a connection a source that is not the pod's, which only a transparent socket may have
// (__ip_dev_find in ip_route_output_key_hash_rcu). One in table main counts as local while that is one with table
// local.
std::optional<Outcome> without_source(const Packet& packet, const Packet& asked, const PodView& pod,
                                      Observer* observer) {
  if (packet.source || asked.direction != Direction::out || asked.destination->family != Family::ipv4) return {};
  const Address& to = *asked.destination;
  const RouteLookup way = route(pod, {to, {}, asked.mark, ~0U, "lo", asked.interface, observer});
  if (way.kind != RouteLookup::Kind::by_rule || is_local(pod, to, observer)) return {};
  if (observer != nullptr) observer->protocol();
  if (asked.protocol != Protocol::tcp) return {};
  const std::optional<bool> is_one = way.route->table == main_table ? pod.has_one_table() : false;
  if (is_one == true) return {};
  if (!is_one) {
    return not_known(asked,
                     fmt::format("whether {} counts as an address of the pod: `{}` is in table main, which is one with "
                                 "table local until a policy rule is added",
                                 to.text(), ip_words(*way.route)),
                     "whether table main is one with table local");
  }
  return end_of(asked, Outcome::Kind::unroutable,
                fmt::format("the route to {} gives it no source address of the pod", to.text()));
}

std::optional<Outcome> without_walk(const Packet& packet, const Packet& asked, const PodView& pod, Observer* observer) {
  auto outcome = not_followed(asked, pod, observer);
  return outcome ? outcome : without_source(packet, asked, pod, observer);
}

// ---- All walks together

// Two walks that end differently: where they part, and how.
struct Parting {
  std::size_t at;
  const Fork& one;
  const Fork& other;
  Parting(const std::vector<Fork>& of_one, const std::vector<Fork>& of_other)
      : Parting(of_one, of_other,
                static_cast<std::size_t>(std::ranges::mismatch(of_one, of_other, {}, &Fork::taken, &Fork::taken).in1 -
                                         of_one.begin())) {}
  [[nodiscard]] std::string words(const std::string& end, const std::string& other_end) const {
    return fmt::format("{} ({}: {}; {}: {})", one.what, one.options[one.taken], end, other.options[other.taken],
                       other_end);
  }

 private:
  Parting(const std::vector<Fork>& of_one, const std::vector<Fork>& of_other, std::size_t where)
      : at(where), one(of_one.at(where)), other(of_other.at(where)) {}
};

// The steps up to the reason, and no further.
void cut(Trace& trace, std::size_t steps) {
  if (trace.packet.state != ConnectionState::established) trace.steps.resize(std::min(steps, trace.steps.size()));
  trace.decisive.clear();
  if (!trace.steps.empty() && trace.steps.back().kind == Step::Kind::unknown) {
    trace.decisive.push_back(trace.steps.size() - 1);
  }
}

// Notes where the first walk parts from others that end otherwise: first from one, and before that from more.
class Partings {
 public:
  void begin(std::size_t at) {
    first_ = at;
    before_.clear();
  }
  void add(std::size_t at) {
    if (at < first_) before_.insert(at);
  }
  // Returns ", and before that whether …" of the choices that the first walk made.
  [[nodiscard]] std::string words(const std::vector<Fork>& made) const {
    const std::vector<std::size_t> before(before_.begin(), before_.end());
    return before.empty() ? "" : ", and before that " + some(before, [&](std::size_t at) { return made[at].what; });
  }
  // Adds the steps that are about them.
  void add_steps(Trace& trace, const std::vector<Fork>& made) const {
    std::vector<std::size_t> steps;
    for (const std::size_t at : before_) {
      const std::size_t step = made[at].steps - 1;  // of no step, if it was made before the first one
      if (step < trace.steps.size() && trace.steps[step].kind == Step::Kind::unknown) steps.push_back(step);
    }
    trace.decisive.insert(trace.decisive.begin(), steps.begin(), steps.end());
  }

 private:
  std::size_t first_ = 0;
  std::set<std::size_t> before_;
};

// Where it ends, and from which address.
bool ends_alike(const Outcome& a, const Outcome& b) { return same_place(a, b) && a.source == b.source; }

// Where it ends by this way, whatever becomes of the answers.
Outcome end_of_way(Outcome outcome) {
  outcome.answers = Outcome::Answers::arrive;
  outcome.other_interfaces.clear();
  return outcome;
}

std::string answers_words(const Outcome& outcome) {
  return outcome.answers == Outcome::Answers::arrive ? "they arrive" : outcome.answers_why;
}

// ---- What the kernel, or the network, would have chosen

// The interface by which a packet from outside comes in: that of its destination, else the one of the default route.
std::string entrance(const PodView& pod, const Address& destination) {
  if (const auto name = interface_of(pod, destination)) return *name;
  const Route* out = default_route(pod, destination.family);
  return out != nullptr ? out->device : pod.interfaces.back().name;
}

// The packet with everything filled in that the kernel, or the network, would have chosen. Throws usage for what cannot
// be: an interface that the pod has not, an address that is not its own for `lo`.
Packet filled_in(Packet packet, const PodView& pod, Observer* observer = nullptr) {
  const auto refuse = [](const std::string& what, const std::string& hint) {
    throw Error(ExitCode::usage, what, hint);
  };
  if (!packet.destination) {
    const Families families = packet.source ? Families(packet.source->family) : Families::both();
    if (packet.direction == Direction::lo) {
      packet.destination = Address::loopback(families.contains(Family::ipv4) ? Family::ipv4 : Family::ipv6);
    } else if (const auto own = own_address(pod, families)) {
      packet.destination = own->address;
    } else {
      refuse(fmt::format("this pod has no {}address that the packet could be for",
                         packet.source ? fmt::format("{} ", name(packet.source->family)) : ""),
             "give the destination's address");
    }
  }
  // No address: the kernel connects to the loopback address, or to the one that the socket is bound to
  // (ip_route_output_key_hash_rcu, tcp_v6_connect).
  const bool to_any = is_any(*packet.destination, observer);
  if (packet.direction != Direction::in && to_any) {
    const bool to_itself = packet.destination->family == Family::ipv4 && packet.source;
    packet.destination = to_itself ? *packet.source : Address::loopback(packet.destination->family);
  }
  const Address& destination = *packet.destination;
  if (packet.protocol == Protocol::icmp && destination.family == Family::ipv6) packet.protocol = Protocol::icmpv6;
  if (packet.direction == Direction::lo && !is_local(pod, destination, observer)) {
    refuse(fmt::format("{} is not an address of this pod: expected one of its own for 'lo'", destination.text()),
           "what goes to another host is 'out'");
  }
  if (packet.direction == Direction::in) {
    if (packet.interface.empty()) packet.interface = entrance(pod, destination);
    if (packet.interface == "lo") refuse("--in-interface 'lo': nothing comes in by lo from outside", "use 'lo'");
  }
  if (!packet.interface.empty() && pod.interface(packet.interface) == nullptr) {
    std::string names;
    for (const Interface& interface : pod.interfaces) names += (names.empty() ? "" : ", ") + printable(interface.name);
    refuse(fmt::format("--{}-interface '{}': this pod has no such interface, it has {}",
                       packet.direction == Direction::in ? "in" : "out", packet.interface, names),
           "give one of them, or leave it out");
  }
  if (!packet.source && packet.direction == Direction::in) {  // addresses for documentation stand for any host outside
    packet.source = Address::parse(destination.family == Family::ipv4 ? "203.0.113.1" : "2001:db8:ffff::1");
  }
  if (observer != nullptr) observer->source();
  if (!packet.source) {
    const RouteLookup way = route(pod, {destination, {}, packet.mark, ~0U, "lo", packet.interface, observer});
    if (way.exists()) packet.source = source_for(pod, way, destination, observer);
    const bool may_be_itself = way.kind == RouteLookup::Kind::unicast || (way.route != nullptr && way.route->source);
    if (may_be_itself && packet.source)  // see possibilities()
      static_cast<void>(contains(AddressRange::single(*packet.source), destination, observer));
  }
  if (!packet.source) packet.source = Address::any(destination.family);
  return packet;
}

// Returns the packet with the source that goes with the next hop of this walk, if the kernel chooses both: it takes the
// hop first (fib_select_path, then fib_result_prefsrc).
Packet with_source_of_hop(Packet packet, const PodView& pod, Forks& forks) {
  const Address& destination = *packet.destination;
  RouteLookup way = route(pod, {destination, {}, packet.mark, 0, "lo", packet.interface});
  if (!way.has_hops() || !packet.interface.empty()) return packet;
  const bool is_one = std::ranges::all_of(way.route->other_devices, [&](const std::string& device) {
    RouteLookup by_device = way;
    by_device.device = device;
    return source_for(pod, by_device, destination) == packet.source;
  });
  if (is_one) return packet;
  way.device = forks.next_hop(way, destination, 0, {}).value();
  packet.source = source_for(pod, way, destination).value_or(Address::any(destination.family));
  return packet;
}

Trace explained(const Packet& packet, const Packet& asked, const PodView& pod, FamilyRules& rules, bool is_brief) {
  Trace trace;
  trace.packet = asked;
  if (const auto outcome = without_walk(packet, asked, pod, nullptr)) {
    trace.outcome = *outcome;
    return trace;
  }
  WalkContext context(pod, rules, nullptr);
  context.is_brief = is_brief;
  context.source_chosen = packet.source.has_value();
  Forks& forks = context.forks;
  std::vector<Fork> made;  // by the first walk, whose trace this is
  bool answered = false;
  std::size_t walks = 0;
  std::vector<Outcome> ends;  // once two walks ended differently: each place
  Outcome::Answers first_answers = Outcome::Answers::arrive;
  Partings partings;  // by where they end, or by their answers
  do {
    PacketWalk walk(context.source_chosen ? asked : with_source_of_hop(asked, pod, forks), context);
    walk.run();
    if (++walks > rules.most_paths()) {
      trace.outcome = too_many_paths(asked, rules);
      ends.clear();
      break;
    }
    if (walk.seen()) continue;
    const auto with_answers = walk.with_answers();
    const Outcome outcome = with_answers.value_or(walk.trace().outcome);
    if (walks == 1) {
      trace = walk.trace();
      trace.outcome = outcome;
      made = forks.made();
      answered = with_answers.has_value();
      if (outcome.kind == Outcome::Kind::unknown) break;
    } else if (!ends.empty()) {
      const bool known = std::ranges::any_of(ends, [&](const Outcome& end) { return ends_alike(end, outcome); });
      if (!known) ends.push_back(outcome);
      if (!ends_alike(ends.front(), outcome)) partings.add(Parting(made, forks.made()).at);
    } else if (!ends_alike(trace.outcome, outcome)) {
      ends = {trace.outcome, outcome};
      const Parting parting(made, forks.made());
      partings.begin(parting.at);
      cut(trace, parting.one.steps);
      trace.outcome =
          not_known(asked, parting.words(sentence(end_of_way(trace.outcome)), sentence(end_of_way(outcome))),
                    parting.one.subject);
    } else if (with_answers && !answered) {
      trace.outcome = outcome;
      answered = true;
    } else if (with_answers && trace.outcome.answers != Outcome::Answers::unknown &&
               trace.outcome.answers != outcome.answers) {
      const Parting parting(made, forks.made());
      first_answers = trace.outcome.answers;
      partings.begin(outcome.answers == Outcome::Answers::unknown ? 0 : parting.at);
      trace.outcome.answers_why = outcome.answers == Outcome::Answers::unknown
                                      ? outcome.answers_why
                                      : parting.words(answers_words(trace.outcome), answers_words(outcome));
      trace.outcome.answers = Outcome::Answers::unknown;
    } else if (with_answers && outcome.answers != first_answers) {
      partings.add(Parting(made, forks.made()).at);
    }
  } while (forks.next());
  if (ends.empty()) {
    trace.outcome.answers_why += partings.words(made);
  } else {
    trace.outcome.why += partings.words(made);
    partings.add_steps(trace, made);
  }
  for (std::size_t i = 2; i < ends.size(); ++i)
    trace.outcome.why += "; another way ends so: " + sentence(end_of_way(ends[i]));
  return trace;
}

}  // namespace

std::string iptables_words(const Step& step) {
  if (step.kind < Step::Kind::passed) return {};
  return fmt::format("-{} {} {}", step.number == 0 ? 'P' : 'A', step.chain, step.rule);
}

Trace explain(const Packet& packet, const PodView& pod, std::span<const Live> live) {
  const Packet asked = filled_in(packet, pod);
  FamilyRules rules(live, asked.destination->family);
  return explained(packet, asked, pod, rules, false);
}

Trace explain_briefly(const Packet& packet, const PodView& pod, FamilyRules& rules) {
  return explained(packet, filled_in(packet, pod), pod, rules, true);
}

std::vector<Possibility> possibilities(const Packet& packet, const PodView& pod, FamilyRules& rules, Observer& observer,
                                       std::vector<std::size_t> guide) {
  const Packet asked = filled_in(packet, pod, &observer);
  Trace nothing;
  nothing.packet = asked;
  if (const auto outcome = without_walk(packet, asked, pod, &observer)) {
    nothing.outcome = *outcome;
    return {{std::move(nothing), {}, {}}};
  }
  WalkContext context(pod, rules, &observer);
  if (!observer.wants_end()) context.forks.look_for_state(std::move(guide));
  context.source_chosen = packet.source.has_value();
  if (asked.destination != packet.destination) {  // see filled_in()
    const bool is_source = packet.source && asked.destination->family == Family::ipv4;
    context.destination = is_source ? Origin::source : Origin::constant;
  }
  const bool to_itself = packet.direction != Direction::in && asked.source == asked.destination;
  if (!packet.source) context.source = to_itself ? context.destination : Origin::constant;
  std::vector<Possibility> all;
  std::size_t walks = 0;
  do {
    observer.begins();
    PacketWalk walk(asked, context);
    walk.run();
    // Those that come to where another has been are short, and yet there may be too many of them.
    if (++walks > 16 * rules.most_paths() || (!walk.seen() && all.size() == rules.most_paths())) {
      nothing.outcome = too_many_paths(asked, rules);
      rules.most_paths() = after_too_many;
      return {{std::move(nothing), {}, {}}};
    }
    const auto with_answers = walk.seen() ? std::nullopt : walk.with_answers();
    const bool known = std::exchange(context.known, false);
    if ((!known && !with_answers) || !observer.wants_end()) continue;
    Possibility& made = all.emplace_back();
    made.trace = walk.take_trace();
    made.known = known;
    if (with_answers) made.trace.outcome = *with_answers;
    for (const Fork& fork : context.forks.made_since()) {
      made.unknowns.push_back(fork.subject);
      made.taken.push_back(fork.taken);
    }
  } while (context.forks.next());
  return all;
}

}  // namespace sidetrack
