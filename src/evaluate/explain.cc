// SPDX-License-Identifier: GPL-2.0-or-later
#include "evaluate/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "evaluate/fill_in.h"
#include "evaluate/forks.h"
#include "evaluate/hook_calls.h"
#include "evaluate/in_flight.h"
#include "evaluate/observer.h"
#include "evaluate/route.h"
#include "evaluate/rule_walk.h"
#include "evaluate/state_key.h"
#include "mesh/describe.h"
#include "model/ports.h"

namespace sidetrack {
namespace {

// ", by rule 9 of nat ISTIO_OUTPUT": the last one that is a reason for the outcome, if there is any.
std::string by_rule(const Trace& trace) {
  return trace.decisive.empty() ? "" : ", by " + rule_of(trace.steps[trace.decisive.back()]);
}

bool is_in(const std::vector<AddressRange>& ranges, const Address& address, Observer* observer) {
  if (observer != nullptr) observer->address(address, ranges);
  return std::ranges::any_of(ranges, [&](const AddressRange& range) { return range.contains(address); });
}

// What all walks that answer one question have in common.
struct Question {
  Question(const PodView& pod_, RulesOfFamily& rules_, Observer* observer_)
      : pod(pod_), rules(rules_), observer(observer_) {}
  const PodView& pod;
  RulesOfFamily& rules;
  Observer* observer;
  Forks forks;
  Origin source = Origin::source;  // of the addresses, with what was left out filled in
  Origin destination = Origin::destination;
  bool known = false;  // the observer knows what becomes of the packet: see Observer::milestone
};

class PacketWalk {
 public:
  // `asked` has nothing left out. `outer`: the walk for which this one is made; it outlives this one.
  PacketWalk(const Packet& asked, Question& question, const PacketWalk* outer = nullptr)
      : question_(question), pod_(question.pod), rules_(question.rules), outer_(outer), asked_(asked) {
    packet_.family = asked_.destination->family;
    packet_.trace.packet = asked_;
    packet_.now.protocol = asked_.protocol;
    packet_.now.source = {*asked_.source, asked_.source_port, question_.source, Origin::source};
    packet_.now.destination = {*asked_.destination, asked_.destination_port, question_.destination,
                               Origin::destination};
    packet_.now.mark = asked_.mark;
    packet_.now.owner = asked_.owner;
    packet_.now.state = asked_.state;
    packet_.now.tracked = false;
    packet_.now.chosen_ports = pod_.chosen_ports;
    packet_.now.observer = question_.observer;
    if (asked_.state != ConnectionState::invalid) packet_.now.connmark = asked_.connmark.value_or(0);
  }

  void run() {
    if (!milestone({})) return;
    if (asked_.state == ConnectionState::established && !first_packet()) return;
    if (asked_.direction == Direction::in) {
      packet_.now.in = asked_.interface;
      prerouting();
    } else {
      output();
    }
    if (asked_.state == ConnectionState::new_ && !discovery_ && !packet_.seen) look_for_neighbour();
    packet_.trace.decisive = packet_.capture.empty() ? packet_.left_alone : packet_.capture;
    packet_.trace.translated = packet_.original.has_value();
  }

  // Another walk has gone on from where this one came to: it has no outcome of its own.
  [[nodiscard]] bool seen() const { return packet_.seen; }
  [[nodiscard]] const Trace& trace() const { return packet_.trace; }

  // Whether the answers to what ended so come back to where the packet came from. They meet the rules as packets of a
  // connection that is known: TPROXY's take them for the proxy's own. Nothing: seen, as above.
  [[nodiscard]] std::optional<Outcome> with_answers() {
    Outcome outcome = packet_.trace.outcome;
    const auto end = [&](Outcome::Answers what, std::string why) {
      outcome.answers = what;
      outcome.answers_why = std::move(why);
      return outcome;
    };
    const bool lands = outcome.kind == Outcome::Kind::lands;
    const bool forwarded = outcome.kind == Outcome::Kind::forwarded;
    if (!lands && !forwarded && outcome.kind != Outcome::Kind::leaves) return outcome;
    if (asked_.state != ConnectionState::new_) return outcome;
    has_ended_ = true;
    if (!milestone({})) return {};
    const PacketAtHook& now = packet_.now;
    const Address& from = now.source.address;
    const bool foreign_source =
        outcome.kind == Outcome::Kind::leaves && (is_loopback(from, observer()) || !is_local(pod_, from, observer()));
    if (!now.source_known || foreign_source) {
      return end(Outcome::Answers::unknown,
                 fmt::format("replies to {} go to whichever host has that address",
                             now.source_known ? from.text() : "an address that the kernel chooses"));
    }
    if (lands && !outcome.transparent && !is_local(pod_, now.destination.address, observer())) {
      return end(Outcome::Answers::unknown,
                 fmt::format("only a transparent socket answers from {}, which is not the pod's",
                             now.destination.address.text()));
    }
    if (lands && asked_.direction != Direction::in && observer() != nullptr) observer()->interface();
    // Answers from the pod itself come in by the interface that has their destination (rt_iif, ip6_dst_idev).
    if (lands && asked_.direction != Direction::in && !asked_.interface.empty() &&
        !is_own_of(pod_, asked_.interface, from, observer())) {
      return end(Outcome::Answers::lost,
                 fmt::format("they do not come in by {}, to which the socket is bound", asked_.interface));
    }
    // A socket that is bound to an interface does not take the route to lo: what is redirected there leaves.
    if (outcome.kind == Outcome::Kind::leaves && is_loopback(now.destination.address, observer())) {
      return end(Outcome::Answers::lost,
                 fmt::format("no host takes what comes from outside to {}", now.destination.address.text()));
    }
    const bool seen_as_sent = !packet_.original || packet_.connection.source;
    if (forwarded && observer() != nullptr) observer()->interface();
    if (forwarded && outcome.interface == asked_.interface && !seen_as_sent) {
      return end(Outcome::Answers::unknown, "the host that the packet came from may answer without passing the pod");
    }
    PacketWalk answer = answer_to(outcome);
    answer.run();
    if (answer.seen()) return {};
    const Trace& back = answer.trace();
    if (now.untracked || answer.packet_.now.untracked) {
      return end(Outcome::Answers::unknown, "a rule exempts them from connection tracking");
    }
    const bool other_zone = answer.packet_.zone != packet_.zone;
    if (other_zone && (answer.packet_.zone_of_others || packet_.zone_of_others)) {
      return end(Outcome::Answers::unknown, "they are tracked in another conntrack zone than the request");
    }
    const Outcome::Kind expected = forwarded                                    ? Outcome::Kind::forwarded
                                   : lands && asked_.direction == Direction::in ? Outcome::Kind::leaves
                                                                                : Outcome::Kind::lands;
    if (back.outcome.kind == expected) return outcome;
    if (back.outcome.kind == Outcome::Kind::unknown) return end(Outcome::Answers::unknown, back.outcome.why);
    if (back.outcome.kind == Outcome::Kind::lands) {
      return end(Outcome::Answers::lost, "they stay in the pod" + by_rule(back));
    }
    return end(Outcome::Answers::lost, sentence(back.outcome));
  }

 private:
  [[nodiscard]] Observer* observer() const { return packet_.now.observer; }

  [[nodiscard]] bool has_ports() const {
    if (observer() != nullptr) observer()->has_ports();
    return asked_.protocol == Protocol::tcp || asked_.protocol == Protocol::udp;
  }

  // The walk of the answer to what ended so.
  [[nodiscard]] PacketWalk answer_to(const Outcome& outcome) const {
    const bool lands = outcome.kind == Outcome::Kind::lands;
    Packet answer;
    answer.direction = lands ? Direction::out : Direction::in;
    answer.protocol = asked_.protocol;
    answer.source = packet_.now.destination.address;
    answer.source_port = packet_.now.destination.port;
    answer.destination = packet_.now.source.address;
    answer.destination_port = packet_.now.source.port;
    answer.interface = lands ? "" : outcome.interface;
    answer.state = ConnectionState::reply;
    answer.connmark = packet_.now.connmark;
    PacketWalk walk(answer, question_, this);
    walk.packet_.now.source = packet_.now.destination;
    walk.packet_.now.destination = packet_.now.source;
    walk.packet_.connection = packet_.connection;
    walk.packet_.now.chosen_ports = packet_.now.chosen_ports;
    walk.packet_.now.owner_known = !lands || !has_ports();  // the listener's; the kernel itself answers pings
    return walk;
  }

  // ---- The neighbours at an interface

  // The next hop is found by ARP, or by neighbour discovery, which passes the rules of IPv6 as any packet does.
  // What is found already is known for a while.
  void look_for_neighbour() {
    const Outcome::Kind kind = packet_.trace.outcome.kind;
    const bool goes_on = kind == Outcome::Kind::leaves || kind == Outcome::Kind::forwarded;
    if (!goes_on && kind != Outcome::Kind::lands) return;
    const std::string device = goes_on ? packet_.trace.outcome.interface : asked_.interface;
    if (device.empty() || device == "lo" || (!goes_on && asked_.direction != Direction::in)) return;
    const std::string reason = packet_.family == Family::ipv4 ? rules_of_arp() : outcome_of_discovery(device);
    if (reason.empty()) return;
    packet_.not_known(fmt::format("whether a neighbour at {} is found: {}", device, reason),
                      "whether a neighbour is found: " + reason);
  }

  // A chain of family arp that may not let everything pass.
  [[nodiscard]] std::string rules_of_arp() const {
    const auto passes = [](const LiveRule& live) {
      return live.rule.target == Target(Verdict::accept) || std::holds_alternative<Continue>(live.rule.target);
    };
    for (const Live& live : rules_.live()) {
      for (const LiveChain& chain : live.chains) {
        if (!chain.families.empty() || !chain.hook || chain.dormant) continue;
        if (chain.policy != Verdict::accept) return fmt::format("the policy of {} {}", chain.table_name, chain.name);
        const auto found = std::ranges::find_if_not(chain.rules, passes);
        if (found == chain.rules.end()) continue;
        return fmt::format("rule {} of {} {}", found - chain.rules.begin() + 1, chain.table_name, chain.name);
      }
    }
    return {};
  }

  std::string outcome_of_discovery(const std::string& device) {
    const Interface* found = pod_.interface(device);
    if (found == nullptr) return {};
    const auto own = std::ranges::find(found->addresses, Family::ipv6,
                                       [](const InterfaceAddress& one) { return one.address.family; });
    if (own == found->addresses.end()) return {};
    Packet sent;
    sent.direction = Direction::out;
    sent.protocol = Protocol::icmpv6;
    sent.source = own->address;
    sent.destination = Address::parse("ff02::1:ff00:1");
    sent.interface = device;
    Packet received = sent;
    received.direction = Direction::in;
    received.source = Address::parse("fe80::1");
    received.destination = own->address;
    for (const Packet& packet : {sent, received}) {
      Question question(pod_, rules_, nullptr);  // of its own: nothing of it is what was asked about
      do {
        PacketWalk walk(packet, question);
        walk.discovery_ = true;
        walk.packet_.now.untracked = true;  // as nf_conntrack_icmpv6_error() makes it
        walk.run();
        const Outcome& outcome = walk.trace().outcome;
        const bool may_be_lost = outcome.kind == Outcome::Kind::dropped || outcome.kind == Outcome::Kind::unknown;
        if (!walk.seen() && may_be_lost) return sentence(outcome);
      } while (question.forks.next());
    }
    return {};
  }

  // ---- The way of the packet

  // What its first packet made of the connection: an established one is not decided about again. False: that cannot be
  // known, or was seen.
  bool first_packet() {
    Packet first = asked_;
    first.state = ConnectionState::new_;
    PacketWalk walk(first, question_, this);
    walk.run();
    packet_.seen = walk.seen();
    if (walk.seen()) return false;
    packet_.first = walk.trace().outcome;
    if (packet_.first->kind == Outcome::Kind::unknown) {
      packet_.trace.steps = walk.trace().steps;
      packet_.trace.decisive = walk.trace().decisive;
      packet_.trace.outcome = *packet_.first;
      return false;
    }
    packet_.connection = walk.packet_.connection;
    translated_by_ = by_rule(walk.trace());
    if (!asked_.connmark && rules_.mark_connections()) {
      // An answer came before a later packet does, and may have changed the mark.
      walk.has_ended_ = true;
      PacketWalk answer = walk.answer_to(*packet_.first);
      const bool answered = packet_.first->kind == Outcome::Kind::lands ||
                            packet_.first->kind == Outcome::Kind::leaves ||
                            packet_.first->kind == Outcome::Kind::forwarded;
      if (answered) answer.run();
      packet_.seen = answer.seen();
      if (answer.seen()) return false;
      packet_.now.connmark = answer.packet_.now.connmark;
    }
    if (packet_.first->kind == Outcome::Kind::dropped) {
      packet_.doubt("the first packet of such a connection is dropped: there is none, if the rules were the same then");
    }
    return true;
  }

  void output() {
    if (const auto fault = route_out()) return packet_.end(Outcome::Kind::unroutable, *fault);
    if (way_.kind == Route::Kind::unknown) return route_not_known();
    // For the whole of OUTPUT: a new route changes it only after the hook (nf_hook_state).
    packet_.now.out = way_.device;
    packet_.hook([&] { return fmt::format("OUTPUT, out by {}{}", way_.device, why(way_)); });
    if (!calls(Hook::output)) return;
    if (!postrouting(way_.device)) return;
    if (!is_up(way_.device)) return packet_.drop(fmt::format("interface {} is down", way_.device));
    if (way_.device == "lo") {
      packet_.by_lo = true;
      packet_.now.in = "lo";
      packet_.now.out.clear();
      packet_.now.owner.reset();
      packet_.now.owner_known = true;
      prerouting();
    } else {
      packet_.end(Outcome::Kind::leaves, "");
      packet_.trace.outcome.original = packet_.original;
      packet_.trace.outcome.interface = way_.device;
    }
  }

  // Looks up the way of what is sent here. Why it cannot be sent, if it cannot.
  std::optional<std::string> route_out() {
    way_ = look_up("lo", asked_.interface);
    if (!way_.exists()) return no_route();
    const Address& from = packet_.now.source.address;
    const bool goes_out = !way_.stays() && way_.kind != Route::Kind::unknown && way_.device != "lo";
    if (goes_out && from.family == Family::ipv4 && is_loopback(from, observer())) {  // __mkroute_output
      return fmt::format("what is sent from {} cannot go out by {}", from.text(), way_.device);
    }
    return {};
  }

  // ip_route_me_harder. False: there is no route, the packet is gone.
  bool reroute(const std::string& because) {
    if (const auto fault = route_out()) {
      packet_.drop(fmt::format("{}, and {}{}", because, way_.exists() ? "" : "there is ", *fault));
      return false;
    }
    if (way_.kind == Route::Kind::unknown) {
      route_not_known();
      return false;
    }
    packet_.kernel([&] { return fmt::format("routing again, as {}: out by {}{}", because, way_.device, why(way_)); });
    return true;
  }

  [[nodiscard]] Route look_up(const std::string& in, const std::string& bound) const {
    const PacketAtHook& now = packet_.now;
    const bool as_asked = asked_.direction != Direction::in && asked_.state != ConnectionState::reply;
    return route(pod_, {now.destination.address, now.source.address, now.mark, in, bound, observer(), as_asked});
  }

  static std::string why(const Route& way) {
    switch (way.kind) {
      case Route::Kind::local:
        return ": the destination is the pod itself";
      case Route::Kind::by_rule:
        return fmt::format(": {} looks up table {}, local {} dev lo", conditions(*way.rule), way.rule->table,
                           way.route->to.prefix_length() == 0 ? "default" : way.route->to.text());
      default:
        return "";
    }
  }

  [[nodiscard]] bool is_up(const std::string& device) const {
    const Interface* found = pod_.interface(device);
    return found == nullptr || found->up;
  }

  // "no route to 10.0.0.1 (ip route unreachable 10.0.0.0/8 table main)"
  [[nodiscard]] std::string no_route() const {
    std::string text = "no route to " + packet_.now.destination.address.text();
    if (way_.route != nullptr) {
      text += fmt::format(" ({})", ip_words(*way_.route));
    } else if (way_.rule != nullptr) {
      text += fmt::format(" ({})", ip_words(*way_.rule));
    }
    return text;
  }

  // A route or a policy rule that asks for more than is followed.
  void route_not_known() {
    const bool is_route = way_.route != nullptr && way_.route->kind == NetworkRoute::Kind::unknown;
    const std::string words = fmt::format("`{}`", is_route ? ip_words(*way_.route) : ip_words(*way_.rule));
    packet_.not_known(fmt::format("the route to {}: {}", packet_.now.destination.address.text(), words),
                      "the route by " + words);
  }

  void prerouting() {
    if (!at_device(Hook::ingress, packet_.now.in)) return;
    packet_.hook([&] { return fmt::format("PREROUTING, in by {}", packet_.now.in); });
    const bool loopback =
        is_loopback(packet_.now.destination.address, observer()) || is_loopback(packet_.now.source.address, observer());
    if (!packet_.by_lo && loopback && packet_.family == Family::ipv6) {  // ip6_rcv_core, before any hook
      return packet_.drop("loopback addresses do not come in by " + packet_.now.in);
    }
    if (!calls(Hook::prerouting)) return;
    routing();
  }

  void routing() {
    // What went out by lo brings its route along (ip_rcv_finish_core finds a valid dst): it stays here.
    if (packet_.by_lo) return input();
    const Address& destination = packet_.now.destination.address;
    const Address& source = packet_.now.source.address;
    if (destination.family == Family::ipv4 && (is_loopback(destination, observer()) ||
                                               is_loopback(source, observer()) || is_local(pod_, source, observer()))) {
      const Address& martian = destination.is_loopback() ? destination : source;
      return packet_.drop(fmt::format("{} cannot come in by {} (martian)", martian.text(), packet_.now.in));
    }
    if (is_loopback(destination, observer())) {  // IPv6, by a translation
      return packet_.not_known(fmt::format("whether {} can be reached by {}", destination.text(), packet_.now.in),
                               "whether loopback addresses can be reached from outside");
    }
    way_ = look_up(packet_.now.in, "");
    if (way_.kind == Route::Kind::unknown) return route_not_known();
    if (way_.stays()) {
      packet_.kernel([&] { return fmt::format("routing: stays here{}", why(way_)); });
      return input();
    }
    packet_.kernel([&] { return fmt::format("routing: {} is not the pod's", destination.text()); });
    if (packet_.transparent)
      return packet_.drop(
          "a packet with a socket cannot be forwarded (ip_forward), and no route by mark keeps it here");
    if (!way_.exists()) return packet_.drop("there is " + no_route());
    packet_.hook([&] { return fmt::format("FORWARD, in by {}, out by {}", packet_.now.in, way_.device); });
    packet_.now.out = way_.device;
    if (!calls(Hook::forward) || !postrouting(way_.device)) return;
    packet_.end(Outcome::Kind::forwarded, "");
    packet_.trace.outcome.interface = way_.device;
  }

  bool postrouting(const std::string& device) {
    packet_.now.out = device;
    if (has_rules(Hook::postrouting)) packet_.hook([&] { return fmt::format("POSTROUTING, out by {}", device); });
    return calls(Hook::postrouting) && at_device(Hook::egress, device);
  }

  // Before and after everything else: chains of a device.
  bool at_device(Hook hook, const std::string& device) {
    if (rules_.at(hook, device).empty()) return true;
    packet_.hook([&] { return fmt::format("{} of {}", name(hook), device); });
    return calls(hook, device);
  }

  void input() {
    if (has_rules(Hook::input)) packet_.hook([&] { return fmt::format("INPUT, in by {}", packet_.now.in); });
    // The socket of a connection that is there already is looked up before (tcp_v4_early_demux), if the sysctl says so.
    if (packet_.now.state != ConnectionState::new_) packet_.now.owner_known = false;
    if (calls(Hook::input)) land();
  }

  void land() {
    const std::optional<Endpoint>& original = packet_.original;
    packet_.end(Outcome::Kind::lands, "");
    Outcome& outcome = packet_.trace.outcome;
    outcome.original = original;
    if (packet_.transparent) {
      outcome.transparent = true;
      outcome.transparent_port = *packet_.transparent;
      outcome.listener = listener_of(*packet_.transparent);
    } else if (packet_.first && packet_.first->transparent) {
      outcome = *packet_.first;  // its socket is found by the connection's addresses, which TPROXY did not change
    } else if (!has_ports()) {
      outcome.listener = "the kernel";
    } else if (packet_.now.state == ConnectionState::reply) {
      outcome.listener = "the socket that opened the connection";
    } else {
      outcome.listener = listener_of(packet_.now.destination.port);
    }
  }

  // By its number, or else by the chain that sent the packet there.
  [[nodiscard]] std::string listener_of(std::uint16_t port) const {
    if (!port_name(port).empty()) return std::string(port_name(port));
    if (packet_.capture.empty()) return packet_.original ? "" : "the app";
    switch (describe(packet_.trace.steps[packet_.capture.back()].live->rule).rule) {
      case MeshRule::outbound_listener:
        return "the proxy's outbound listener";
      case MeshRule::inbound_listener:
      case MeshRule::tproxy_listener:
        return "the proxy's inbound listener";
      default:
        return "";
    }
  }

  // ---- What the kernel calls at a hook

  // False: the packet is gone.
  bool calls(Hook at, const std::string& device = {}) {
    const auto one = [&](const Call& call) {
      switch (call.kind) {
        case Call::Kind::conntrack:
          conntrack();
          return Passed::on;
        case Call::Kind::nat:
          return nat(at) && milestone(at, &call) ? Passed::on : Passed::gone;
        case Call::Kind::rules: {
          const Passed passed = rules(call, at);
          return passed == Passed::gone || milestone(at, &call) ? passed : Passed::gone;
        }
      }
      return Passed::on;
    };
    const std::vector<Call>& all = rules_.at(at, device);
    const bool asks = std::ranges::any_of(all, [](const Call& call) { return call.kind != Call::Kind::conntrack; });
    if (asks && !milestone(at)) return false;
    return in_order(all, one) != Passed::gone;
  }

  // A chain of type route looks up the route again where a rule changed the mark (ipt_mangle_out, nf_route_table_hook).
  Passed rules(const Call& call, Hook at) {
    const std::uint32_t mark = packet_.now.mark;
    const Passed passed = ask(call.base);
    if (passed == Passed::gone || at != Hook::output) return passed;
    if (call.base.chain->hook->type != ChainType::route || packet_.now.mark == mark) return passed;
    return reroute(fmt::format("the mark is now {}", packet_.now.mark)) ? passed : Passed::gone;
  }

  // By priority. Of equal ones the kernel asks the one that was registered last first, and cannot be asked which that
  // was: any may be the next one. Ends with the first that is not passed on.
  template <typename One>
  Passed in_order(const std::vector<Call>& all, const One& one) {
    Passed passed = Passed::on;
    for (auto first = all.begin(); passed == Passed::on && first != all.end();) {
      const auto end =
          std::find_if(first, all.end(), [&](const Call& call) { return call.priority != first->priority; });
      passed = end - first == 1 ? one(*first) : in_any_order({first, end}, one);
      first = end;
    }
    return passed;
  }

  template <typename One>
  Passed in_any_order(std::vector<Call> equal, const One& one) {
    const std::vector<const void*> outer = packet_.to_come;
    Passed passed = Passed::on;
    while (passed == Passed::on && !equal.empty()) {
      const auto next = next_of(equal);
      if (!next) return Passed::gone;
      const Call call = equal[*next];
      equal.erase(equal.begin() + static_cast<std::ptrdiff_t>(*next));
      packet_.to_come = outer;
      for (const Call& rest : equal) packet_.to_come.push_back(rest.base.chain);
      passed = one(call);
    }
    packet_.to_come = outer;
    return passed;
  }

  std::optional<std::size_t> next_of(const std::vector<Call>& equal) {
    if (equal.size() == 1) return 0;
    Fork fork{"chains of equal priority", "which is asked first of", {}, packet_.trace.steps.size(), 0};
    Situation situation{{}, packet_};
    for (const Call& call : equal) {
      const std::string words = name_of(call);
      fork.what += fmt::format("{} {}", fork.options.empty() ? "" : " and", words);
      fork.options.push_back(fmt::format("if {}", words));
      situation.place.push_back(call.base.chain);
    }
    fork.what += fmt::format(" (all at priority {})", equal.front().priority);
    const auto next = question_.forks.choose(std::move(fork), std::move(situation));
    packet_.seen = !next;
    return next;
  }

  static std::string name_of(const Call& call) {
    switch (call.kind) {
      case Call::Kind::conntrack:
        return "conntrack";
      case Call::Kind::nat:
        return "nat";
      case Call::Kind::rules:
        break;
    }
    return fmt::format("{} ({})", call.base.name(), name(call.base.live->backend));
  }

  // ---- What the kernel does beside the rules

  void conntrack() {
    if (packet_.by_lo && packet_.now.tracked) {
      packet_.kernel("conntrack: tracked already, in OUTPUT");
      return;
    }
    if (packet_.now.untracked) return packet_.kernel("conntrack: not tracked");
    switch (packet_.now.state) {
      case ConnectionState::new_:
        packet_.kernel([&] {
          return fmt::format("conntrack: a new connection{}",
                             packet_.zone ? fmt::format(", in zone {}", *packet_.zone) : "");
        });
        break;
      case ConnectionState::established:
        packet_.kernel("conntrack: an established connection");
        break;
      case ConnectionState::reply:
        packet_.kernel("conntrack: a reply of an established connection");
        break;
      case ConnectionState::invalid:
        packet_.kernel("conntrack: invalid: it belongs to no known connection");
        return;
    }
    packet_.now.tracked = true;
  }

  // The chains of type nat. They are asked once in a connection's life: for the destination in PREROUTING or OUTPUT,
  // for the source in INPUT or POSTROUTING (nf_nat_inet_fn). The first one that translates ends the search; ACCEPT does
  // not. False: the packet is gone.
  bool nat(Hook at) {
    const bool of_destination = at == Hook::output || at == Hook::prerouting;
    const Endpoint before = packet_.now.destination;
    if (!packet_.now.tracked) return not_asked(at, "an untracked packet is not translated");
    if (packet_.now.state == ConnectionState::new_) {
      bool& decided = of_destination ? packet_.destination_decided : packet_.source_decided;
      if (decided) return not_asked(at, "nat has already decided about this connection in OUTPUT");
      decided = true;
      const auto chain = [&](const Call& call) { return ask(call.base); };
      if (in_order(rules_.of_nat(at), chain) == Passed::gone) return false;
    } else {
      not_asked(at, "only the first packet of a connection passes nat");
      packet_.now.state == ConnectionState::reply ? translate_answer(of_destination) : translate(of_destination);
    }
    if (at != Hook::output) return true;
    const Endpoint& after = packet_.now.destination;
    if (observer() != nullptr && after.address_origin != before.address_origin) {
      is_in({AddressRange::single(after.address)}, before.address, observer());
      is_in({AddressRange::single(before.address)}, after.address, observer());
    }
    if (after.address == before.address) return true;
    return reroute("the destination changed");
  }

  bool not_asked(Hook at, const char* because) {
    if (has_rules_of_nat(at)) packet_.kernel([&] { return fmt::format("nat {} is skipped: {}", name(at), because); });
    return true;
  }

  // A later packet, as the first one was.
  void translate(bool of_destination) {
    const auto& made = of_destination ? packet_.connection.destination : packet_.connection.source;
    if (!made || (of_destination ? packet_.destination_decided : packet_.source_decided)) return;
    if (of_destination) {
      packet_.original = packet_.now.destination;
      packet_.now.destination = made->after;
      packet_.destination_decided = true;
      packet_.kernel([&] {
        return fmt::format("redirected to {}, as the first packet was{}", made->after.text(), translated_by_);
      });
    } else {
      packet_.now.source = made->after;
      packet_.now.source_known = made->after_known;
      packet_.source_decided = true;
      packet_.kernel("its source is translated, as the first packet's was");
    }
  }

  // An answer, back.
  void translate_answer(bool of_destination) {
    const auto& made = of_destination ? packet_.connection.source : packet_.connection.destination;
    if (!made) return;
    (of_destination ? packet_.now.destination : packet_.now.source) = made->before;
    packet_.kernel([&] {
      return fmt::format("its {} is {} again", of_destination ? "destination" : "source", made->before.text());
    });
  }

  // ---- The rules

  [[nodiscard]] bool has_rules_of_nat(Hook at) const { return !rules_.of_nat(at).empty(); }
  [[nodiscard]] bool has_rules(Hook at) const {
    const auto& found = rules_.at(at);
    return has_rules_of_nat(at) || std::ranges::find(found, Call::Kind::rules, &Call::kind) != found.end();
  }

  Passed ask(const BaseChain& base) {
    packet_.mark_written = false;
    const Passed passed = walk_chain(packet_, pod_, base, rules_.chains(*base.live), question_.forks);
    if (packet_.mark_written && observer() != nullptr) observer()->mark();
    return passed;
  }

  // ---- For who observes

  // After this call of the hook; none: before the first one; no hook: before all or at the end. False: the packet need
  // not be followed.
  bool milestone(std::optional<Hook> at, const Call* after = nullptr) {
    if (observer() == nullptr || question_.forks.any()) return true;
    StateKey key;
    const PacketWalk* asked = this;  // the walk of what is asked about
    for (; asked->outer_ != nullptr; asked = asked->outer_) asked->outer_->add_to(key);
    add_to(key);
    key.add(at);
    if (after != nullptr) {
      key.add(after->kind);
      key.add(after->base.chain);
    }
    const bool of_first = asked != this && !asked->has_ended_;  // what it notes is the other's only if it is the end
    const InFlight& packet = asked->packet_;
    std::optional<std::size_t> left_alone;
    if (!packet.left_alone.empty()) left_alone = packet.left_alone.back();
    question_.known =
        !observer()->milestone({key.take(), packet.trace, left_alone, of_first || !packet.capture.empty()});
    packet_.seen = question_.known;
    return !question_.known;
  }

  // What of this walk decides about the rest of it, or of those that it waits for.
  void add_to(StateKey& key) const {
    key.add(asked_.direction);
    key.add(asked_.state);
    key.add(has_ended_);
    key.add(packet_.original);
    key.add(packet_.transparent);
    key.add(packet_.zone);
    key.add(packet_.zone_of_others);
    add_rule(key, packet_.capture);
    if (outer_ != nullptr) add_rule(key, packet_.left_alone);
    add(key, packet_.connection.destination);
    add(key, packet_.connection.source);
    const PacketAtHook& now = packet_.now;
    key.add(now.source);
    key.add(now.destination);
    key.add(now.chosen_ports.first);
    key.add(now.chosen_ports.last);
    key.add(now.source_known);
    key.add(now.untracked);
    key.add(now.connmark);
    if (has_ended_) return add(key, packet_.trace.outcome);
    const bool is_answer = asked_.state == ConnectionState::reply;
    if (is_answer || asked_.direction == Direction::in) key.add(asked_.interface);  // else the observer hears of it
    const bool own_mark = !is_answer && now.mark == asked_.mark;
    key.add(own_mark);
    if (!own_mark) key.add(now.mark);
    key.add(now.in);
    key.add(now.out);
    key.add(now.owner.has_value());
    key.add(now.owner_known);
    key.add(now.tracked);
    key.add(packet_.by_lo);
    key.add(packet_.destination_decided);
    key.add(packet_.source_decided);
    key.add(packet_.first.has_value());
    if (packet_.first) add(key, *packet_.first);
    key.add(way_.kind);
    key.add(way_.device);
  }

  static void add(StateKey& key, const std::optional<Translation>& made) {
    key.add(made.has_value());
    if (!made) return;
    key.add(made->before);
    key.add(made->after);
    key.add(made->after_known);
  }

  static void add(StateKey& key, const Outcome& outcome) {
    key.add(outcome.kind);
    key.add(outcome.at);
    key.add(outcome.interface);
    key.add(outcome.transparent);
    key.add(outcome.transparent_port);
  }

  void add_rule(StateKey& key, const std::vector<std::size_t>& reasons) const {
    const Step* step = reasons.empty() ? nullptr : &packet_.trace.steps[reasons.back()];
    key.add(step != nullptr);
    if (step == nullptr) return;
    key.add(step->live);
    key.add(step->in);
  }

  Question& question_;
  const PodView& pod_;
  RulesOfFamily& rules_;
  const PacketWalk* outer_;
  const Packet asked_;

  bool has_ended_ = false;  // what its answers meet is asked
  bool discovery_ = false;  // this packet looks for a neighbour itself
  InFlight packet_;
  Route way_;
  std::string translated_by_;  // by the rule that decided about the first packet
};

constexpr std::size_t most_walks = 500;

// ---- Destinations that are not followed

bool is_multicast(const Address& address, Observer* observer) {
  static const AddressRange ranges[] = {*AddressRange::parse("224.0.0.0/4"), *AddressRange::parse("ff00::/8")};
  return is_in({ranges[address.family == Family::ipv4 ? 0 : 1]}, address, observer);
}

// 255.255.255.255, or the first or last address of a network of this pod (the first one until kernel 5.14).
bool is_broadcast(const PodView& pod, const Address& address, Observer* observer) {
  if (address.family != Family::ipv4) return false;
  std::vector<AddressRange> all{AddressRange::single(AddressRange::prefix(Address::any(Family::ipv4), 0).last)};
  for (const Interface& interface : pod.interfaces) {
    for (const InterfaceAddress& own : interface.addresses) {
      if (own.address.family != Family::ipv4 || own.prefix_length > 30) continue;
      const AddressRange network = AddressRange::prefix(own.address, own.prefix_length);
      for (const Address& end : {network.first, network.last}) {
        if (end != own.address) all.push_back(AddressRange::single(end));
      }
    }
  }
  return is_in(all, address, observer);
}

std::optional<Outcome> not_followed(const Packet& packet, const PodView& pod, Observer* observer) {
  const Address& to = *packet.destination;
  const bool any = is_any(to, observer);
  const bool broadcast = is_broadcast(pod, to, observer);
  if (!any && !broadcast && !is_multicast(to, observer)) return {};
  if (observer != nullptr) observer->protocol();
  Outcome outcome;
  outcome.at = {to, packet.destination_port};
  if (packet.direction != Direction::in && packet.protocol == Protocol::tcp) {
    outcome.kind = Outcome::Kind::unroutable;
    outcome.why =
        fmt::format("no tcp connection to {}, a {} address", to.text(), broadcast ? "broadcast" : "multicast");
  } else {
    outcome.kind = Outcome::Kind::unknown;
    outcome.subject = "which hosts receive what is sent to no address, a broadcast or a multicast address";
    outcome.why = fmt::format("which hosts receive what is sent to {}, {}", to.text(),
                              any         ? "no address"
                              : broadcast ? "a broadcast address"
                                          : "a multicast address");
  }
  return outcome;
}

// A route by a rule gives such a connection a source that is not the pod's, which only a transparent socket may have
// (__ip_dev_find in ip_route_output_key_hash_rcu).
std::optional<Outcome> without_source(const Packet& packet, const Packet& asked, const PodView& pod,
                                      Observer* observer) {
  if (packet.source || asked.direction != Direction::out || asked.destination->family != Family::ipv4) return {};
  const Address& to = *asked.destination;
  const Route way = route(pod, {to, {}, asked.mark, "lo", asked.interface, observer});
  if (way.kind != Route::Kind::by_rule || is_local(pod, to, observer)) return {};
  if (observer != nullptr) observer->protocol();
  if (asked.protocol != Protocol::tcp) return {};
  Outcome outcome;
  outcome.kind = Outcome::Kind::unroutable;
  outcome.at = {to, asked.destination_port};
  outcome.why = fmt::format("the route to {} gives it no source address of the pod", to.text());
  return outcome;
}

// What is known without following the packet. `asked`: with all filled in.
std::optional<Outcome> without_walk(const Packet& packet, const Packet& asked, const PodView& pod, Observer* observer) {
  auto outcome = not_followed(asked, pod, observer);
  return outcome ? outcome : without_source(packet, asked, pod, observer);
}

Outcome too_many_walks(const Packet& asked) {
  Outcome outcome;
  outcome.kind = Outcome::Kind::unknown;
  outcome.at = {*asked.destination, asked.destination_port};
  outcome.why = fmt::format("where it ends: more than {} possible paths", most_walks);
  outcome.subject = fmt::format("where it ends, by more than {} possible paths", most_walks);
  return outcome;
}

// ---- All walks together

// Two walks that end differently: where they part, and how.
struct Parting {
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
  Parting(const std::vector<Fork>& of_one, const std::vector<Fork>& of_other, std::size_t at)
      : one(of_one.at(at)), other(of_other.at(at)) {}
};

// The steps up to the reason, and no further.
void cut(Trace& trace, std::size_t steps) {
  if (trace.packet.state != ConnectionState::established) trace.steps.resize(std::min(steps, trace.steps.size()));
  trace.decisive.clear();
  if (!trace.steps.empty() && trace.steps.back().kind == Step::Kind::unknown) {
    trace.decisive.push_back(trace.steps.size() - 1);
  }
}

Outcome without_answers(Outcome outcome) {
  outcome.answers = Outcome::Answers::arrive;
  return outcome;
}

std::string answers_words(const Outcome& outcome) {
  return outcome.answers == Outcome::Answers::arrive ? "they arrive" : outcome.answers_why;
}

}  // namespace

std::string iptables_words(const Step& step) {
  if (step.kind < Step::Kind::passed) return {};
  return fmt::format("-{} {} {}", step.number == 0 ? 'P' : 'A', step.chain, step.rule);
}

Trace explain(const Packet& packet, const PodView& pod, std::span<const Live> live) {
  const Packet asked = filled_in(packet, pod);
  Trace trace;
  trace.packet = asked;
  if (const auto outcome = without_walk(packet, asked, pod, nullptr)) {
    trace.outcome = *outcome;
    return trace;
  }
  RulesOfFamily rules(live, asked.destination->family);
  Question question(pod, rules, nullptr);
  Forks& forks = question.forks;
  std::vector<Fork> made;  // by the first walk, whose trace this is
  bool answered = false;
  std::size_t walks = 0;
  std::vector<Outcome> ends;  // once two walks ended differently: each place
  do {
    PacketWalk walk(asked, question);
    walk.run();
    if (++walks > most_walks) {
      trace.outcome = too_many_walks(asked);
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
      const bool known = std::ranges::any_of(ends, [&](const Outcome& end) { return same_place(end, outcome); });
      if (!known) ends.push_back(outcome);
    } else if (!same_place(trace.outcome, outcome)) {
      ends = {trace.outcome, outcome};
      const Parting parting(made, forks.made());
      cut(trace, parting.one.steps);
      const std::string why =
          parting.words(sentence(without_answers(trace.outcome)), sentence(without_answers(outcome)));
      trace.outcome = {};
      trace.outcome.kind = Outcome::Kind::unknown;
      trace.outcome.at = {*asked.destination, asked.destination_port};
      trace.outcome.why = why;
    } else if (with_answers && !answered) {
      trace.outcome = outcome;
      answered = true;
    } else if (with_answers && trace.outcome.answers != Outcome::Answers::unknown &&
               trace.outcome.answers != outcome.answers) {
      trace.outcome.answers_why =
          outcome.answers == Outcome::Answers::unknown
              ? outcome.answers_why
              : Parting(made, forks.made()).words(answers_words(trace.outcome), answers_words(outcome));
      trace.outcome.answers = Outcome::Answers::unknown;
    }
  } while (forks.next());
  for (std::size_t i = 2; i < ends.size(); ++i)
    trace.outcome.why += "; another way ends so: " + sentence(without_answers(ends[i]));
  return trace;
}

std::vector<Possibility> possibilities(const Packet& packet, const PodView& pod, RulesOfFamily& rules,
                                       Observer& observer) {
  const Packet asked = filled_in(packet, pod, &observer);
  Trace nothing;
  nothing.packet = asked;
  if (const auto outcome = without_walk(packet, asked, pod, &observer)) {
    nothing.outcome = *outcome;
    return {{std::move(nothing), {}, true}};
  }
  Question question(pod, rules, &observer);
  if (asked.destination != packet.destination) {  // see filled_in()
    const bool is_source = packet.source && asked.destination->family == Family::ipv4;
    question.destination = is_source ? Origin::source : Origin::constant;
  }
  const bool to_itself = packet.direction != Direction::in && asked.source == asked.destination;
  if (!packet.source) question.source = to_itself ? question.destination : Origin::constant;
  std::vector<Possibility> all;
  do {
    observer.begins();
    PacketWalk walk(asked, question);
    walk.run();
    if (question.known) return {};
    if (walk.seen()) continue;
    if (all.size() == most_walks) {
      nothing.outcome = too_many_walks(asked);
      return {{std::move(nothing), {}, true}};
    }
    const auto with_answers = walk.with_answers();
    if (question.known) return {};
    Possibility& made = all.emplace_back(Possibility{walk.trace(), {}, with_answers.has_value()});
    if (with_answers) made.trace.outcome = *with_answers;
    for (const Fork& fork : question.forks.made()) made.unknowns.push_back(fork.subject);
  } while (question.forks.next());
  return all;
}

}  // namespace sidetrack
