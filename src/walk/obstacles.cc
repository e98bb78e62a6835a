// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk/obstacles.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "mesh/catalogue.h"
#include "mesh/istio_rules.h"
#include "model/error.h"
#include "rule/ours.h"
#include "rule/splice.h"
#include "walk/chain_index.h"
#include "walk/examples.h"
#include "walk/explain.h"
#include "walk/frames.h"
#include "walk/route.h"

namespace sidetrack {
namespace {

// Each packet is followed through all rules that it meets: this many of those that others' rules speak of, fewer if
// there are very many rules. What is not followed is said.
constexpr std::size_t most_packets = 512;
constexpr std::size_t most_steps = 100'000;
constexpr std::size_t fewest_packets = 4;
constexpr std::size_t most_jumps = 16;

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

Conditions conditions_of(const std::vector<Match>& matches) {
  Conditions all;
  for (const Match& match : matches) all.push_back(&match);
  return all;
}

// What is asked of the requests whose answers these conditions are about: what comes from port 443 answers what went to
// it, and who sent it is nobody's matter.
std::vector<Match> of_requests(const Conditions& conditions) {
  const auto other = [](End end) { return end == End::source ? End::destination : End::source; };
  std::vector<Match> all;
  for (const Match* match : conditions) {
    const bool is_of_sender = std::holds_alternative<OwnerMatch>(*match) || std::holds_alternative<MarkMatch>(*match) ||
                              std::holds_alternative<CgroupMatch>(*match);
    if (is_of_sender || std::holds_alternative<InterfaceMatch>(*match)) continue;
    all.push_back(*match);
    if (auto* ports = std::get_if<PortMatch>(&all.back())) ports->end = other(ports->end);
    if (auto* address = std::get_if<AddressMatch>(&all.back())) address->end = other(address->end);
    if (auto* set = std::get_if<SetMatch>(&all.back())) set->end = other(set->end);
  }
  return all;
}

// What is asked of a packet before its destination is translated.
std::vector<Match> before_translation(const Conditions& conditions) {
  std::vector<Match> all;
  for (const Match* match : conditions) {
    const auto* ports = std::get_if<PortMatch>(match);
    const auto* address = std::get_if<AddressMatch>(match);
    const bool is_of_destination = (ports != nullptr && ports->end == End::destination) ||
                                   (address != nullptr && address->end == End::destination) ||
                                   std::holds_alternative<InterfaceMatch>(*match);
    if (!is_of_destination) all.push_back(*match);
  }
  return all;
}

bool names_loopback(const Conditions& conditions) {
  return std::ranges::any_of(conditions, [](const Match* match) {
    const auto* interface = std::get_if<InterfaceMatch>(match);
    return interface != nullptr && interface->name == "lo" && !interface->negated;
  });
}

// Tells the kernel's route to the network of an address that lo has.
bool is_of_loopback(const Route& route, const PodView& pod) {
  const Interface* lo = pod.interface("lo");
  return lo != nullptr && std::ranges::any_of(lo->addresses, [&](const InterfaceAddress& own) {
           return own.address.family == route.to.family() &&
                  AddressRange::prefix(own.address, own.prefix_length) == route.to;
         });
}

// A route that does not decide whether a packet gets to the proxy.
bool is_usual(const Route& route, const Plan& plan, const PodView& pod) {
  if (route.kind == Route::Kind::unicast) return !route.has_hop_by("lo") || is_of_loopback(route, pod);
  return std::ranges::any_of(plan.routing.local_routes, [&](const Route& ours) {
    return ours.family() == route.family() && ours.table == route.table;  // see inspect_routing
  });
}

bool has_family(const PodView& pod, Family family) {
  return family == Family::ipv4 || own_address(pod, family).has_value();
}

// What keeps lo from carrying what is redirected, if anything does.
std::string fault_of_loopback(const PodView& pod, const Plan& plan) {
  const Interface* lo = pod.interface("lo");
  if (lo == nullptr) return {};
  if (!lo->up) return "interface lo is down";
  for (const Family family : plan.families.list()) {
    const Address address = Address::loopback(family);
    if (has_family(pod, family) && !is_local(pod, address)) return fmt::format("lo has no address {}", address.text());
  }
  return {};
}

// A policy rule of another program that decides by itself: what it matches is sent nowhere, or nobody knows where.
bool refuses(const PolicyRule& rule) {
  return !rule.is_ours() && rule.action != PolicyRule::Action::lookup && rule.action != PolicyRule::Action::none;
}

// It decides about packets alone that have a mark: whoever marks them means it.
bool is_of_marked(const PolicyRule& rule) { return !rule.inverted && (rule.mark & rule.mask) != 0; }

// What the policy rule asks of packets, as far as that can be said of packets.
std::vector<Match> matches_of(const PolicyRule& rule) {
  std::vector<Match> all;
  const auto add = [&](End end, const std::optional<AddressRange>& range) {
    if (range && !rule.inverted) all.emplace_back(AddressMatch{end, {{range->last, range->last}}, false});
  };
  add(End::source, rule.from);
  add(End::destination, rule.to);
  return all;
}

bool decides(const LiveChain& chain) { return !chain.rules.empty() || chain.policy != Verdict::accept; }

// Whether packets meet there what they meet in `planned`, in the same order, and nothing else.
bool is_alone(const Live& planned, std::span<const Live> live) {
  std::ptrdiff_t met = 0;
  for (const Live& one : live) {
    for (const LiveChain& chain : one.chains) {
      if (!decides(chain)) continue;
      const auto same = std::ranges::find_if(planned.chains, [&](const LiveChain& asked) {
        return asked.families == chain.families && asked.table == chain.table && asked.name == chain.name;
      });
      if (one.backend != planned.backend || same == planned.chains.end() || chain.dormant || chain.hook != same->hook ||
          chain.policy != same->policy ||
          !std::ranges::equal(chain.rules, same->rules, {}, &LiveRule::rule, &LiveRule::rule))
        return false;
      ++met;
    }
  }
  return met == std::ranges::count_if(planned.chains, decides);
}

// Whether packets of that direction get to the rule: what comes in meets none of OUTPUT.
bool is_met_by(Direction direction, const Rule& rule, const Live& plan) {
  std::vector<const LiveChain*> met;
  for (const LiveChain& chain : plan.chains) {
    if (!chain.hook) continue;
    const bool is_of_out = chain.hook->hook == Hook::output || chain.hook->hook == Hook::postrouting;
    if (direction == Direction::lo || is_of_out == (direction == Direction::out)) met.push_back(&chain);
  }
  for (std::size_t i = 0; i < met.size(); ++i) {
    if (met[i]->table == rule.table && met[i]->name == rule.chain) return true;
    for (const LiveRule& one : met[i]->rules) {
      const auto* jump = std::get_if<Jump>(&one.rule.target);
      if (jump == nullptr) continue;
      for (const LiveChain& to : plan.chains) {
        const bool is_led_to = to.table == met[i]->table && to.families == met[i]->families && to.name == jump->chain;
        if (is_led_to && std::ranges::find(met, &to) == met.end()) met.push_back(&to);
      }
    }
  }
  return false;
}

// Calls `ask` for each rule of others with what it asks, and with what leads to its chain, for each way there.
class OthersRules {
 public:
  using Ask = std::function<void(const LiveRule& rule, const Conditions& conditions)>;
  OthersRules(std::span<const Live> live, Ask ask) : ask_(std::move(ask)) {
    for (const Live& one : live) {
      ChainIndex ipv4(one, Family::ipv4);
      ChainIndex ipv6(one, Family::ipv6);
      for (const LiveChain& chain : one.chains) {
        if (chain.hook) follow(chain.families.contains(Family::ipv4) ? ipv4 : ipv6, chain, 0);
      }
    }
  }

  // Whether there are more ways than are followed.
  [[nodiscard]] bool has_more() const { return looked_at_ > most_steps; }

 private:
  void follow(ChainIndex& chains, const LiveChain& chain, std::size_t depth) {
    for (const LiveRule& one : chain.rules) {
      if (++looked_at_ > most_steps) return;
      const std::size_t before = conditions_.size();
      for (const Match& match : one.rule.matches) conditions_.push_back(&match);
      if (!one.ours && !std::holds_alternative<NonTerminating>(one.rule.target)) ask_(one, conditions_);
      const auto* jump = std::get_if<Jump>(&one.rule.target);
      const LiveChain* to = jump != nullptr ? chains.find(chain, jump->chain) : nullptr;
      if (to != nullptr && depth < most_jumps) follow(chains, *to, depth + 1);
      conditions_.resize(before);
    }
  }

  const Ask ask_;
  Conditions conditions_;
  std::size_t looked_at_ = 0;
};

class Search {
 public:
  Search(const Plan& plan, const PodView& pod, PodView usual, std::span<const Live> live, Live planned)
      : plan_(plan),
        pod_(pod),
        usual_(std::move(usual)),
        live_(live),
        planned_{std::move(planned)},
        examples_(usual_, plan.ruleset) {}

  std::vector<Obstacle> run(std::span<const Packet> more) {
    std::size_t rules = 1;
    for (const Live& one : live_) {
      for (const LiveChain& chain : one.chains) {
        rules += chain.rules.size();
        ask_for_state_ = ask_for_state_ || std::ranges::any_of(chain.rules, decides_by_state);
      }
    }
    const std::size_t most = std::clamp<std::size_t>(most_steps / rules, fewest_packets, most_packets);
    most_others_ = most;
    // What each rule of the plan decides about: as `verify --probe` tries it.
    const std::string loopback = fault_of_loopback(pod_, plan_);
    std::set<std::string> kinds;
    for (const Rule& rule : plan_.ruleset.rules) {
      if (kinds.size() == most) break;
      if (is_of_replies_or_forwarded(rule)) continue;
      if (!kinds.insert(kind(rule)).second) continue;
      const Conditions conditions = conditions_of(rule.matches);
      for (const Direction direction : {Direction::out, Direction::in, Direction::lo}) {
        if (direction == Direction::lo && !names_loopback(conditions)) continue;
        if (is_met_by(direction, rule, planned_.front()))
          ask(rule.families, direction, conditions, Whose::plan, loopback);
      }
    }
    for (const Interface& interface : pod_.interfaces) {
      if (lies_upon(interface)) ask_by(interface);
    }
    for (const Packet& packet : more) ask(packet, Whose::others, {});
    std::size_t asked = 0;
    const OthersRules others(live_, [&](const LiveRule& live, const Conditions& conditions) {
      if (asked++ >= most) return;
      ask(live.rule.families, conditions, Whose::others);
      for (const std::vector<Match>& matches : {of_requests(conditions), before_translation(conditions)})
        ask(live.rule.families, conditions_of(matches), Whose::others);
    });
    if (asked > most || others.has_more()) return not_all(most);
    for (const PolicyRule& rule : pod_.rules) {
      if (!refuses(rule) || is_of_marked(rule)) continue;
      if (asked++ == most) return not_all(most);
      const std::vector<Match> matches = matches_of(rule);
      ask_both_ways(rule.family, conditions_of(matches), ip_words(rule));
    }
    for (const Route& route : pod_.routes) {
      if (is_usual(route, plan_, pod_)) continue;
      if (asked++ == most) return not_all(most);
      const Match to = AddressMatch{End::destination, {{route.to.last, route.to.last}}, false};
      ask_both_ways(route.to.family(), {&to}, ip_words(route));
    }
    return std::move(found_);
  }

 private:
  // Rules of the plan matter for all that they are about, those of others for what the plan captures.
  enum class Whose : std::uint8_t { plan, others };
  enum class Answer : std::uint8_t { not_captured, as_planned, otherwise };

  std::vector<Obstacle> not_all(std::size_t followed) {
    if (found_.empty())
      found_.push_back({fmt::format("rules and routes of other programs beyond the first {}", followed), {}, {}, {}});
    return std::move(found_);
  }

  // What comes in there meets the rules for frames, which speak of no packets.
  void ask_by(const Interface& interface) {
    for (const InterfaceAddress& own : interface.addresses) {
      if (!plan_.families.contains(own.address.family)) continue;
      const Match in = InterfaceMatch{InterfaceDirection::in, interface.name, false};
      const Match to = AddressMatch{End::destination, {AddressRange::single(own.address)}, false};
      for (const Packet& packet : examples_.of({&in, &to}, Direction::in, own.address.family)) {
        if (ask(packet, Whose::others, {}) != Answer::not_captured) break;
      }
    }
  }

  // About a usual packet; of what others ask, if the plan leaves that alone, about others until it captures one.
  void ask(Families families, const Conditions& conditions, Whose whose, const std::string& because = {}) {
    for (const Direction direction : {Direction::out, Direction::in, Direction::lo})
      ask(families, direction, conditions, whose, because);
  }
  // Asks about packets for which the conditions hold, and about those whose replies they hold for.
  void ask_both_ways(Families families, const Conditions& conditions, const std::string& because) {
    ask(families, conditions, Whose::others, because);
    ask(families, conditions_of(of_requests(conditions)), Whose::others, because);
  }
  void ask(Families families, Direction direction, const Conditions& conditions, Whose whose,
           const std::string& because) {
    for (const Family family : (families & plan_.families).list()) {
      for (const Packet& packet : examples_.of(conditions, direction, family)) {
        if (ask(packet, whose, because) != Answer::not_captured || whose == Whose::plan) break;
        if (++others_ > most_others_) break;
      }
    }
  }

  Answer ask(const Packet& packet, Whose whose, const std::string& because) {
    const auto [known, is_new] = asked_.try_emplace(explain_words(packet), Answer::not_captured);
    if (is_new) known->second = answer(packet, whose, because);
    return known->second;
  }

  Answer answer(const Packet& packet, Whose whose, const std::string& because) {
    const auto both = explained(packet, whose);
    if (!both) return Answer::not_captured;
    const Outcome& planned = both->planned.outcome;
    const Outcome& there = both->there.outcome;
    if (same_place(there, planned)) {
      // Of a connection that is captured the later packets are asked about, too: they name the rule.
      if (packet.state == ConnectionState::new_ && ask_for_state_ && is_captured(planned)) {
        Packet later = packet;
        later.state = ConnectionState::established;
        if (ask(later, whose, because) == Answer::otherwise) return Answer::otherwise;
      }
      if (there == planned || !has_usual_source_port(packet))
        return is_captured(planned) ? Answer::as_planned : Answer::not_captured;
    }
    report(packet, *both, because);
    return Answer::otherwise;
  }

  // Whether its answers go to a port that kernels choose: what others say of well-known ones is about servers.
  [[nodiscard]] bool has_usual_source_port(const Packet& packet) const {
    return !packet.source_port || pod_.ephemeral_ports.contains(*packet.source_port);
  }

  struct Explained {
    Trace planned;
    Trace there;
  };
  // Nothing: this pod cannot have such a packet, or it does not matter.
  [[nodiscard]] std::optional<Explained> explained(const Packet& packet, Whose whose) const {
    try {
      Trace planned = explain(packet, usual_, planned_);
      // What only passes through is no matter of the plan: of lost replies to forwarded DNS apply warns itself.
      if (planned.outcome.kind == Outcome::Kind::forwarded) return std::nullopt;
      if (whose == Whose::others && !is_captured(planned.outcome)) return std::nullopt;
      return Explained{std::move(planned), explain(packet, pod_, live_)};
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  void report(const Packet& packet, const Explained& both, const std::string& because) {
    std::string rule = because.empty() ? reason(both.there, both.planned.outcome) : because;
    if (reasons_.contains(rule)) return;
    const auto witness = witness_of(packet, both);
    if (!witness) return;
    reasons_.insert(rule);
    found_.push_back({std::move(rule), explain_words(witness->there.packet), sentence(witness->planned.outcome),
                      sentence(witness->there.outcome)});
  }

  // The packet as `explain` is asked about it, with no more of its values than the answers need, and what explain says
  // of it then. Nothing: it says something else.
  [[nodiscard]] std::optional<Explained> witness_of(const Packet& packet, const Explained& both) const {
    Packet whole = packet;
    if (packet.direction == Direction::in) whole.source = both.there.packet.source;
    Packet bare = whole;
    bare.source_port.reset();
    bare.interface.clear();
    if (bare.direction != Direction::in) bare.source.reset();
    if (bare.cgroup == "") bare.cgroup.reset();
    std::vector<Packet> candidates(6, bare);
    candidates[1].source_port = whole.source_port;
    candidates[2].source = whole.source;
    candidates[3].interface = whole.interface;
    candidates[4].cgroup = whole.cgroup;
    candidates[5] = whole;
    for (const Packet& candidate : candidates) {
      if (as_asked(candidate) != candidate) continue;
      auto found = explained(candidate, Whose::plan);
      if (!found || !ends_alike(found->planned, both.planned) || !ends_alike(found->there, both.there)) continue;
      found->there.packet = candidate;
      return found;
    }
    return std::nullopt;
  }

  static bool ends_alike(const Trace& a, const Trace& b) {
    return same_place(a.outcome, b.outcome) && a.outcome.answers == b.outcome.answers;
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
  std::span<const Live> live_;
  std::vector<Live> planned_;
  const Examples examples_;
  bool ask_for_state_ = false;  // rules of others decide by the state of the connection
  std::size_t others_ = 0;      // packets with other values than the usual ones
  std::size_t most_others_ = 0;
  std::map<std::string, Answer> asked_;  // by their words
  std::set<std::string> reasons_;
  std::vector<Obstacle> found_;
};

// ---- Policy rules and routes.

// Where packets go that carry the mark: to any address, and to those that others' rules and routes name.
std::vector<RouteKey> marked_packets(const PolicyRule& marked, const PodView& pod) {
  std::vector<Address> destinations{
      *Address::parse(marked.family == Family::ipv4 ? "198.51.100.1" : "2001:db8:ffff::1")};
  std::vector<std::optional<Address>> sources;
  for (const PolicyRule& rule : pod.rules) {
    if (!may_divert(rule, marked)) continue;
    if (rule.to) destinations.push_back(rule.to->first);
    if (rule.from) sources.emplace_back(rule.from->first);
  }
  for (const Route& route : pod.routes) {
    if (route.to.family() == marked.family && destinations.size() < most_packets) destinations.push_back(route.to.last);
  }
  if (const auto own = own_address(pod, marked.family)) sources.insert(sources.begin(), own->address);
  if (sources.empty()) sources.emplace_back(std::nullopt);
  std::vector<RouteKey> keys;
  for (const Address& destination : destinations) {
    if (destination == Address::any(destination.family)) continue;
    for (const auto& source : sources) keys.push_back({destination, source, marked.mark, "lo", ""});
  }
  return keys;
}

// The pod with no policy rules but ours and the usual ones, and no routes of others beside ours.
PodView with_our_routing(PodView pod, const Plan& plan) {
  const std::vector<PolicyRule> usual_rules = default_rules();
  std::erase_if(pod.rules, [&](const PolicyRule& rule) {
    return !rule.is_ours() && std::ranges::find(usual_rules, rule) == usual_rules.end();
  });
  std::erase_if(pod.routes, [&](const Route& route) {
    return route.kind != Route::Kind::local && std::ranges::any_of(plan.routing.local_routes, [&](const Route& ours) {
             return ours.family() == route.family() && ours.table == route.table;
           });
  });
  return pod;
}

// Of the plan's proxy, whose packets no rule turns elsewhere.
Owner proxy_of(const Plan& plan) {
  Owner owner{1000, 1000};
  for (const Rule& rule : plan.ruleset.rules) {
    if (!is_of(rule, MeshRule::proxy_return)) continue;
    for (const Match& match : rule.matches) {
      const auto* asked = std::get_if<OwnerMatch>(&match);
      if (asked == nullptr || asked->negated || asked->ids.empty()) continue;
      (asked->kind == OwnerKind::uid ? owner.uid : owner.gid) = asked->ids.front().first;
    }
  }
  return owner;
}

// A policy rule or a route of another program takes marked packets away.
void inspect_routing(const Plan& plan, BackendKind backend, const PodView& pod, std::span<const Live> live,
                     std::vector<Obstacle>& found) {
  if (plan.routing.policy_rules.empty()) return;
  std::set<std::string> reasons;
  for (const Obstacle& known : found) reasons.insert(known.rule);
  const PodView usual = with_our_routing(pod, plan);
  const Live planned_rules[] = {as_live(plan.ruleset, backend)};
  for (const PolicyRule& marked : plan.routing.policy_rules) {
    for (const RouteKey& key : marked_packets(marked, pod)) {
      const RouteLookup way = route(pod, key);
      if (way.stays()) continue;
      const bool by_our_rule = way.rule != nullptr && way.rule->is_ours();
      const std::string reason = way.rule == nullptr                   ? "routing"
                                 : by_our_rule && way.route != nullptr ? ip_words(*way.route)
                                                                       : ip_words(*way.rule);
      if (reasons.contains(reason)) continue;
      Packet packet;
      packet.source = key.source;
      packet.destination = key.destination;
      packet.destination_port = 80;
      packet.owner = proxy_of(plan);
      packet.mark = marked.mark;
      const Outcome planned = explain(packet, usual, planned_rules).outcome;
      const Outcome there = explain(packet, pod, live).outcome;
      if (same_place(planned, there)) continue;
      reasons.insert(reason);
      found.push_back({reason, explain_words(packet), sentence(planned), sentence(there)});
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
  for (const Slot& slot : splice(there, rules, came_by_insert)) {
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

PodView without_others(PodView pod, const Plan& plan) {
  std::erase_if(pod.rules, refuses);
  for (const PolicyRule& rule : default_rules()) {  // put back what was deleted
    if (std::ranges::find(pod.rules, rule) == pod.rules.end()) pod.insert(rule);
  }
  pod.tcp_fwmark_accept = false;
  for (Interface& interface : pod.interfaces) {
    interface.src_valid_mark = false;
    interface.rules_of_frames = {};
    for (InterfaceAddress& own : interface.addresses) own.is_local = true;
  }
  std::erase_if(pod.routes, [&](const Route& route) { return !is_usual(route, plan, pod); });
  Interface* lo = pod.interface("lo");
  if (lo == nullptr) return pod;
  lo->up = true;
  for (const Family family : plan.families.list()) {
    const Address address = Address::loopback(family);
    const auto there = std::ranges::find(lo->addresses, address, &InterfaceAddress::address);
    if (has_family(pod, family) && there == lo->addresses.end()) {
      lo->addresses.insert(lo->addresses.begin(), {address, family == Family::ipv4 ? 8 : 128});
    }
  }
  return pod;
}

std::string text(const Obstacle& obstacle) {
  if (obstacle.is_unknown()) {
    return fmt::format("{}: there are too many to follow what each of them speaks of: unknown whether they {}",
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
  if (!put) {  // in the order of a survey
    const auto next = std::ranges::find_if(after, [&](const Live& one) { return one.backend > backend; });
    after.insert(next, as_live(canonical, backend));
  }
  return after;
}

std::vector<Obstacle> obstacles(const Plan& plan, BackendKind backend, const PodView& pod, std::span<const Live> live,
                                std::span<const Packet> more) {
  PodView usual = without_others(pod, plan);
  Live planned = as_live(plan.ruleset, backend);
  std::vector<Obstacle> found;
  if (usual != pod || !is_alone(planned, live))  // else each packet would be followed twice through the same
    found = Search(plan, pod, std::move(usual), live, std::move(planned)).run(more);
  inspect_routing(plan, backend, pod, live, found);
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
