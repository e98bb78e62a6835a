// SPDX-License-Identifier: GPL-2.0-or-later
#include "evaluate/obstacles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "evaluate/explain.h"
#include "evaluate/frames.h"
#include "evaluate/route.h"
#include "mesh/catalogue.h"
#include "mesh/ownership.h"
#include "mesh/splice.h"
#include "model/error.h"

namespace sidetrack {
namespace {

// Each packet is followed through all rules that it meets: this many of those that others' rules speak of, fewer if
// there are very many rules. What is not followed is said.
constexpr std::size_t most_packets = 512;
constexpr std::size_t most_steps = 100'000;
constexpr std::size_t fewest_packets = 4;

// ---- Packets that a rule speaks of.

Packet example(const Rule& rule, Direction direction, Family family) {
  Packet packet;
  packet.direction = direction;
  packet.owner = direction == Direction::in ? std::nullopt : std::optional<Owner>({1000, 1000});
  packet.cgroup = "";  // in none that a rule speaks of
  packet.destination_port = 80;
  packet.source_port =
      40'000;  // any of those that kernels choose: what others say of a well-known one is no matter here
  for (const Match& match : rule.matches) {
    if (const auto* protocol = std::get_if<ProtocolMatch>(&match); protocol != nullptr && !protocol->negated) {
      packet.protocol = protocol->protocol;
    } else if (const auto* ports = std::get_if<PortMatch>(&match); ports != nullptr && !ports->ports.empty()) {
      const PortRange& range = ports->ports.front();
      std::uint16_t port = range.first;
      if (ports->negated) port = range.contains(80) ? static_cast<std::uint16_t>(range.last + 1) : 80;
      (ports->end == End::source ? packet.source_port : packet.destination_port) = port;
    } else if (const auto* address = std::get_if<AddressMatch>(&match); address != nullptr && !address->negated &&
                                                                        !address->ranges.empty() &&
                                                                        address->ranges.front().family() == family) {
      (address->end == End::source ? packet.source : packet.destination) = address->ranges.front().first;
    } else if (const auto* owner = std::get_if<OwnerMatch>(&match);
               owner != nullptr && !owner->negated && !owner->ids.empty() && packet.owner) {
      (owner->kind == OwnerKind::uid ? packet.owner->uid : packet.owner->gid) = owner->ids.front().first;
    } else if (const auto* cgroup = std::get_if<CgroupMatch>(&match); cgroup != nullptr && !cgroup->negated) {
      packet.cgroup = cgroup->path;
    } else if (const auto* mark = std::get_if<MarkMatch>(&match);
               mark != nullptr && !mark->negated && direction != Direction::in) {
      packet.mark = mark->value;
    }
  }
  if (!packet.destination && direction == Direction::out) {  // a host outside: addresses set aside for documentation
    packet.destination = Address::parse(family == Family::ipv4 ? "198.51.100.1" : "2001:db8:ffff::1");
  }
  return packet;
}

// Without what makes no difference to most readers: which source it has, unless it comes from outside.
std::string shown(Packet packet) {
  if (packet.direction != Direction::in) packet.source.reset();
  packet.source_port = 0;
  if (packet.cgroup == "") packet.cgroup.reset();
  packet.interface.clear();
  return explain_words(packet);
}

// What rules have in common that differ in their values alone: of thousands of excluded ranges one is asked about.
std::string kind(const Rule& rule) {
  std::string text = fmt::format("{} {} {} {} {}", name(rule.table), rule.chain, names(rule.families),
                                 static_cast<int>(rule.origin.rule), rule.target.index());
  for (const Match& match : rule.matches) {
    text += fmt::format(" {}{}", is_negated(match) ? "!" : "", match.index());
  }
  return text;
}

bool is_captured(const Outcome& outcome) {
  return outcome.kind == Outcome::Kind::lands && (outcome.transparent || outcome.original.has_value());
}

bool decides_by_state(const LiveRule& live) {
  return !live.ours && std::ranges::any_of(live.rule.matches, [](const Match& match) {
    return std::holds_alternative<ConntrackStateMatch>(match) || std::holds_alternative<ConntrackDirectionMatch>(match);
  });
}

// -s SERVER -p udp --sport 53 -j CT --zone 1, -i docker0 -p udp --dport 53 -j CT --zone 1: nothing that the pod sends
// or gets begins so, and the replies to what does begin are followed.
bool is_of_replies_or_forwarded(const Rule& rule) {
  using enum MeshRule;
  return std::ranges::any_of(
      std::array{dns_answer, ambient_dns_answer, dns_forwarded_query, ambient_dns_forwarded_query},
      [&](MeshRule id) { return is_of(rule, id); });
}

// The rule for the answers of what this one speaks of: what comes from port 443 answers what went to it.
Rule answered(Rule rule) {
  const auto other = [](End end) { return end == End::source ? End::destination : End::source; };
  for (Match& match : rule.matches) {
    if (auto* ports = std::get_if<PortMatch>(&match)) ports->end = other(ports->end);
    if (auto* address = std::get_if<AddressMatch>(&match)) address->end = other(address->end);
  }
  return rule;
}

// A route that does not decide whether a packet gets to the proxy.
bool is_usual(const NetworkRoute& route, const Plan& plan) {
  if (route.kind == NetworkRoute::Kind::onward) return true;
  return std::ranges::any_of(plan.routing.local_routes, [&](const LocalRoute& ours) {
    return ours.family == route.to.family() && ours.table == route.table;  // see inspect_routing
  });
}

// What keeps lo from carrying what is redirected, if anything does.
std::string fault_of_loopback(const PodView& pod, const Plan& plan) {
  const Interface* lo = pod.interface("lo");
  if (lo == nullptr) return {};
  if (!lo->up) return "interface lo is down";
  const Address address = Address::loopback(Family::ipv4);
  if (plan.families.contains(Family::ipv4) && !is_local(pod, address)) return "lo has no address 127.0.0.1";
  return {};
}

// A policy rule of another program that decides by itself: what it matches is sent nowhere, or nobody knows where.
bool refuses(const RoutingRule& rule) {
  return !rule.ours && rule.action != RoutingRule::Action::lookup && rule.action != RoutingRule::Action::none;
}

// It decides about packets alone that have a mark: whoever marks them means it.
bool is_of_marked(const RoutingRule& rule) { return !rule.inverted && (rule.mark & rule.mask) != 0; }

// One that matches packets as the policy rule does, as far as that can be said of packets.
Rule matched(const RoutingRule& rule) {
  Rule made;
  made.families = rule.family;
  const auto add = [&](End end, const std::optional<AddressRange>& range) {
    if (range && !rule.inverted) made.matches.emplace_back(AddressMatch{end, {{range->last, range->last}}, false});
  };
  add(End::source, rule.from);
  add(End::destination, rule.to);
  return made;
}

// The pod without what other programs did to its loopback interface, policy rules, routes and checks of sources.
PodView usual(PodView pod, const Plan& plan) {
  std::erase_if(pod.rules, refuses);
  pod.accepts_with_mark = false;
  for (Interface& interface : pod.interfaces) interface.source_by_mark = false;
  std::erase_if(pod.routes, [&](const NetworkRoute& route) { return !is_usual(route, plan); });
  Interface* lo = pod.interface("lo");
  if (lo == nullptr) return pod;
  lo->up = true;
  for (const Family family : plan.families.list()) {
    const Address address = Address::loopback(family);
    const bool has_family = family == Family::ipv4 || own_address(pod, family);
    const auto there = std::ranges::find(lo->addresses, address, &InterfaceAddress::address);
    if (has_family && there == lo->addresses.end()) {
      lo->addresses.insert(lo->addresses.begin(), {address, family == Family::ipv4 ? 8 : 128});
    }
  }
  return pod;
}

class Search {
 public:
  Search(const Plan& plan, BackendKind backend, const PodView& pod, std::span<const Live> live)
      : plan_(plan), pod_(pod), usual_(usual(pod, plan)), live_(live), planned_{as_live(plan.ruleset, backend)} {}

  std::vector<Obstacle> run() {
    for (const Family family : plan_.families.list()) captured_sources_[family] = captured_source(family);
    std::size_t rules = 1;
    for (const Live& one : live_) {
      for (const LiveChain& chain : one.chains) {
        rules += chain.rules.size();
        ask_for_state_ = ask_for_state_ || std::ranges::any_of(chain.rules, decides_by_state);
      }
    }
    const std::size_t most = std::clamp<std::size_t>(most_steps / rules, fewest_packets, most_packets);
    // What each rule of the plan decides about: as `verify --probe` tries it.
    const std::string loopback = fault_of_loopback(pod_, plan_);
    std::set<std::string> kinds;
    for (const Rule& rule : plan_.ruleset.rules) {
      if (kinds.size() == most) break;
      if (is_of_replies_or_forwarded(rule)) continue;
      if (kinds.insert(kind(rule)).second) ask(rule, false, loopback);
    }
    for (const Interface& interface : pod_.interfaces) {
      if (lies_upon(interface)) ask_by(interface);
    }
    std::size_t asked = 0;
    for (const Live& one : live_) {
      for (const LiveChain& chain : one.chains) {
        for (const LiveRule& live : chain.rules) {
          if (live.ours || std::holds_alternative<Continue>(live.rule.target)) continue;
          if (asked++ == most) return not_all(most);
          ask(live.rule, true);
          ask(answered(live.rule), true);
        }
      }
    }
    for (const RoutingRule& rule : pod_.rules) {
      if (!refuses(rule) || is_of_marked(rule)) continue;
      if (asked++ == most) return not_all(most);
      ask(matched(rule), true, ip_words(rule));
    }
    for (const NetworkRoute& route : pod_.routes) {
      if (is_usual(route, plan_)) continue;
      if (asked++ == most) return not_all(most);
      Rule rule;
      rule.families = route.to.family();
      rule.matches = {AddressMatch{End::destination, {{route.to.last, route.to.last}}, false}};
      ask(rule, true, ip_words(route));
    }
    return std::move(found_);
  }

 private:
  std::vector<Obstacle> not_all(std::size_t followed) {
    if (found_.empty())
      found_.push_back({fmt::format("rules and routes of other programs beyond the first {}", followed), {}, {}, {}});
    return std::move(found_);
  }

  // What comes in there meets the rules for frames, which speak of no packets.
  void ask_by(const Interface& interface) {
    for (const InterfaceAddress& own : interface.addresses) {
      if (!plan_.families.contains(own.address.family)) continue;
      Packet packet = example({}, Direction::in, own.address.family);
      packet.destination = own.address;
      packet.interface = interface.name;
      ask(packet, false, {});
    }
  }

  void ask(const Rule& rule, bool captured_alone, const std::string& because = {}) {
    for (const Family family : (rule.families & plan_.families).list()) {
      for (const Direction direction : {Direction::out, Direction::in}) {
        Packet packet = example(rule, direction, family);
        if (direction == Direction::in && !packet.destination) {
          const auto own = own_address(pod_, family);
          if (!own) continue;
          packet.destination = own->address;
        }
        if (direction == Direction::in && !packet.source) packet.source = captured_sources_.at(family);
        if (asked_.insert(shown(packet)).second) ask(packet, captured_alone, because);
      }
    }
  }

  // Of a plan that captures inbound traffic of some sources alone, one of these: rules of others mostly leave open
  // whose traffic they are about. Nothing: whatever source will do.
  [[nodiscard]] std::optional<Address> captured_source(Family family) const {
    const auto ranges_of = [&](MeshRule id) {
      std::vector<AddressRange> all;
      for (const Rule& rule : plan_.ruleset.rules) {
        if (!is_of(rule, id)) continue;
        for (const Match& match : rule.matches) {
          const auto* address = std::get_if<AddressMatch>(&match);
          if (address != nullptr && address->ranges.front().family() == family)
            all.insert(all.end(), address->ranges.begin(), address->ranges.end());
        }
      }
      return all;
    };
    const std::vector<AddressRange> excluded = ranges_of(MeshRule::inbound_excluded_range);
    for (const AddressRange& range : ranges_of(MeshRule::inbound_jump)) {
      const bool is_captured =
          std::ranges::none_of(excluded, [&](const AddressRange& one) { return one.contains(range.first); });
      if (is_captured) return range.first;
    }
    return std::nullopt;
  }

  // Whether something is in its way.
  bool ask(const Packet& packet, bool captured_alone, const std::string& because) {
    std::optional<Trace> planned;
    try {
      planned = explain(packet, usual_, planned_);
    } catch (const Error&) {  // this pod cannot have such a packet
      return false;
    }
    if (captured_alone && !is_captured(planned->outcome)) return false;
    const Trace there = explain(packet, pod_, live_);
    if (same_place(there.outcome, planned->outcome)) {
      // Of a connection that is captured the later packets are asked about, too: they name the rule.
      if (packet.state == ConnectionState::new_ && ask_for_state_ && is_captured(planned->outcome)) {
        Packet later = packet;
        later.state = ConnectionState::established;
        if (ask(later, captured_alone, because)) return true;
      }
      if (there.outcome == planned->outcome) return false;
    }
    std::string rule = because.empty() ? reason(there, planned->outcome) : because;
    if (!reasons_.insert(rule).second) return true;
    found_.push_back({std::move(rule), shown(there.packet), sentence(planned->outcome), sentence(there.outcome)});
    return true;
  }

  // The last rule of another program among those that are the reason; else what the answer says.
  static std::string reason(const Trace& trace, const Outcome& planned) {
    Outcome but_for_answers = trace.outcome;
    but_for_answers.answers = planned.answers;
    but_for_answers.answers_why = planned.answers_why;
    if (but_for_answers == planned) return "return path: " + trace.outcome.answers_why;
    std::string ours;  // met what others did before
    for (auto step = trace.decisive.rbegin(); step != trace.decisive.rend(); ++step) {
      const Step& decisive = trace.steps[*step];
      const std::string which = decisive.number == 0 ? "the policy" : fmt::format("rule {}", decisive.number);
      std::string rule =
          fmt::format("{} of {} {}: {}", which, decisive.table, decisive.chain, iptables_words(decisive));
      if (decisive.live == nullptr || !decisive.live->ours) return rule;
      if (ours.empty()) ours = std::move(rule);
    }
    for (const std::string& why : {trace.outcome.why, trace.outcome.answers_why, ours}) {
      if (!why.empty()) return why;
    }
    return "the rules of others";
  }

  const Plan& plan_;
  const PodView& pod_;
  const PodView usual_;
  std::map<Family, std::optional<Address>> captured_sources_;
  bool ask_for_state_ = false;  // rules of others decide by the state of the connection
  std::span<const Live> live_;
  std::vector<Live> planned_;
  std::set<std::string> asked_;
  std::set<std::string> reasons_;
  std::vector<Obstacle> found_;
};

// ---- Policy rules and routes.

// Where packets go that carry the mark: to any address, and to those that others' rules and routes name.
std::vector<RouteKey> marked_packets(const PolicyRule& marked, const PodView& pod) {
  std::vector<Address> destinations{
      *Address::parse(marked.family == Family::ipv4 ? "198.51.100.1" : "2001:db8:ffff::1")};
  std::vector<std::optional<Address>> sources{std::nullopt};
  for (const RoutingRule& rule : pod.rules) {
    if (!may_take(rule, marked)) continue;
    if (rule.to) destinations.push_back(rule.to->first);
    if (rule.from) sources.emplace_back(rule.from->first);
  }
  for (const NetworkRoute& route : pod.routes) {
    if (route.to.family() == marked.family && destinations.size() < most_packets) destinations.push_back(route.to.last);
  }
  if (const auto own = own_address(pod, marked.family)) sources.emplace_back(own->address);
  std::vector<RouteKey> keys;
  for (const Address& destination : destinations) {
    if (destination == Address::any(destination.family)) continue;
    for (const auto& source : sources) keys.push_back({destination, source, marked.mark, "lo", ""});
  }
  return keys;
}

std::string where(const Route& way) {
  switch (way.kind) {
    case Route::Kind::none:
      return "has no route";
    case Route::Kind::onward:
      return "goes out by " + way.device;
    case Route::Kind::unknown:
      return "takes a route that cannot be predicted";
    case Route::Kind::local:
    case Route::Kind::by_rule:
      break;
  }
  return "stays in the pod";
}

// A policy rule or a route of another program takes marked packets away.
void inspect_routing(const Plan& plan, const PodView& pod, std::vector<Obstacle>& found) {
  std::set<std::string> reasons;
  for (const Obstacle& known : found) reasons.insert(known.rule);
  for (const PolicyRule& marked : plan.routing.policy_rules) {
    for (const RouteKey& key : marked_packets(marked, pod)) {
      const Route way = route(pod, key);
      if (way.stays()) continue;
      const bool by_our_rule = way.rule != nullptr && way.rule->ours;
      const std::string reason = way.rule == nullptr                   ? "routing"
                                 : by_our_rule && way.route != nullptr ? ip_words(*way.route)
                                                                       : ip_words(*way.rule);
      if (!reasons.insert(reason).second) continue;
      Packet packet;
      packet.destination = key.destination;
      packet.destination_port = 80;
      packet.mark = marked.mark;
      found.push_back({reason, shown(packet), "stays in the pod", where(way)});
    }
  }
}

// ---- What is there after apply.

// Without what is ours.
void drop_ours(Live& live) {
  std::erase_if(live.chains, [](const LiveChain& chain) { return is_wholly_ours(chain); });
  for (LiveChain& chain : live.chains) std::erase_if(chain.rules, &LiveRule::ours);
}

// Others' rules of a chain where they stand, and the wanted ones in the place of ours.
std::vector<LiveRule> spliced(const std::vector<LiveRule>& there, const std::vector<LiveRule>& wanted) {
  std::vector<Rule> placed;
  for (const LiveRule& one : wanted) {
    placed.push_back(one.rule);
    if (came_by_insert(one.rule)) placed.back().insert_at = 1;
  }
  std::vector<const Rule*> rules;
  std::ranges::transform(placed, std::back_inserter(rules), [](const Rule& rule) { return &rule; });
  std::vector<LiveRule> result;
  for (const Slot& slot : splice(there, rules)) {
    result.push_back(slot.kept ? there[*slot.kept] : LiveRule{*slot.fresh, {}, true, 0});
    result.back().rule.insert_at.reset();
  }
  return result;
}

// As the backends of iptables write it.
void put_ours(Live& live, const Ruleset& canonical) {
  Live wanted = as_live(canonical, live.backend);
  std::vector<LiveChain> added;
  for (LiveChain& chain : wanted.chains) {
    const auto there = std::ranges::find_if(live.chains, [&](const LiveChain& one) {
      return one.families == chain.families && one.table == chain.table && one.name == chain.name;
    });
    if (there == live.chains.end()) {
      if (traits(live.backend).of_nf_tables) {
        chain.table_name = (chain.families == Families(Family::ipv4) ? "ip " : "ip6 ") + chain.table_name;
      }
      added.push_back(std::move(chain));
    } else {
      there->rules = spliced(there->rules, chain.rules);
      there->ours = chain.ours;
    }
  }
  for (LiveChain& there : live.chains) {
    const bool asked = std::ranges::any_of(wanted.chains, [&](const LiveChain& one) {
      return one.families == there.families && one.table == there.table && one.name == there.name;
    });
    if (!asked) std::erase_if(there.rules, &LiveRule::ours);
  }
  std::ranges::move(added, std::back_inserter(live.chains));
}

}  // namespace

std::string text(const Obstacle& obstacle) {
  if (obstacle.is_unknown()) {
    return fmt::format("{}: there are too many to follow what each of them speaks of: cannot know whether they {}",
                       obstacle.rule, obstacle.planned.empty() ? "keep traffic from the proxy" : obstacle.planned);
  }
  return fmt::format("{}: `{}` {}; as requested it {}", obstacle.rule, obstacle.packet, obstacle.instead,
                     obstacle.planned);
}

std::vector<Live> after_apply(const Ruleset& canonical, BackendKind backend, bool there, std::vector<Live> after) {
  bool put = there;
  for (Live& one : after) {
    if (there && one.backend == backend) continue;
    if (one.backend == backend && !traits(backend).in_own_table) {
      put_ours(one, canonical);
      put = true;
    } else {
      drop_ours(one);
    }
  }
  if (!put) after.push_back(as_live(canonical, backend));
  return after;
}

std::vector<Obstacle> obstacles(const Plan& plan, BackendKind backend, const PodView& pod, std::span<const Live> live) {
  std::vector<Obstacle> found = Search(plan, backend, pod, live).run();
  inspect_routing(plan, pod, found);
  return found;
}

std::vector<Obstacle> obstacles(std::span<const Live> live, const Routing& ours, const PodView& pod) {
  std::vector<Obstacle> found;
  for (const Live& one : live) {
    Plan there;
    there.families = Families::both();
    there.routing = ours;
    for (const LiveChain& chain : one.chains) {
      for (const LiveRule& rule : chain.rules) {
        if (rule.ours) there.ruleset.rules.push_back(rule.rule);
      }
    }
    if (there.ruleset.rules.empty()) continue;
    std::ranges::move(obstacles(there, one.backend, pod, live), std::back_inserter(found));
  }
  return found;
}

}  // namespace sidetrack
