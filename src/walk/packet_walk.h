// SPDX-License-Identifier: GPL-2.0-or-later
// One packet on its way: what the kernel's hooks, rules, address translation and routing make of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "walk/forks.h"
#include "walk/hook_calls.h"
#include "walk/in_flight.h"
#include "walk/route.h"
#include "walk/rule_walk.h"

namespace sidetrack {

class Observer;
class StateKey;

// What all walks that answer one question have in common.
struct WalkContext {
  WalkContext(const PodView& pod_, FamilyRules& rules_, Observer* observer_);
  const PodView& pod;
  FamilyRules& rules;
  Observer* observer;
  std::uint32_t asked_marks;  // the bits of marks that rules or policy rules ask for
  Forks forks;
  bool source_chosen = true;       // by the sender, before the first route is looked up
  Origin source = Origin::source;  // of the addresses, with what was left out filled in
  Origin destination = Origin::destination;
  bool is_brief = false;  // rules that do not match are not noted
  bool known = false;     // the observer knows what becomes of the packet: see Observer::checkpoint
};

class PacketWalk {
 public:
  // `asked` has nothing left out. `outer`: the walk for which this one is made; it outlives this one.
  PacketWalk(const Packet& asked, WalkContext& context, const PacketWalk* outer = nullptr);

  void run();

  // Another walk has gone on from where this one came to: it has no outcome of its own.
  [[nodiscard]] bool seen() const { return packet_.seen; }
  [[nodiscard]] const Trace& trace() const { return packet_.trace; }
  [[nodiscard]] Trace take_trace() { return std::move(packet_.trace); }  // at last

  // Whether the answers to what ended so come back to where the packet came from. They meet the rules as packets of a
  // connection that is known: TPROXY's take them for the proxy's own. Nothing: seen, as above.
  [[nodiscard]] std::optional<Outcome> with_answers();

 private:
  [[nodiscard]] Observer* observer() const { return packet_.now.observer; }

  // ---- packet_walk.cc: from hook to hook
  void output();
  void prerouting();
  void routing();
  bool has_ipv6_off(const std::string& device);  // then it is dropped
  bool postrouting(const std::string& device);
  // Before and after everything else: chains of a device.
  bool at_device(Hook hook, const std::string& device);
  // What lies below the device, as the ports of a bridge do, has rules of its own for the frames. False: they may drop
  // them, or turn them elsewhere; which is not followed.
  bool below_device(Hook hook, const std::string& device);
  void input();
  void land();
  // By its number, or else by the chain that sent the packet there.
  [[nodiscard]] std::string listener_of(std::uint16_t port) const;
  // Whether PREROUTING was called while the frame passed the bridge by which it comes in.
  [[nodiscard]] bool bridge_calls_rules() const;
  // Returns the setting of the interface of that name; `setting` is one of those that are off unless they are set.
  [[nodiscard]] bool has_setting(bool Interface::*setting, const std::string& interface) const;
  [[nodiscard]] bool has_ports() const;
  [[nodiscard]] bool has_rules_of_nat(Hook at) const;
  [[nodiscard]] bool has_rules(Hook at) const;

  // ---- packet_routing.cc
  // Looks up the way of what is sent here, again or first. Why it cannot be sent, if it cannot.
  std::optional<std::string> route_out() { return route_out(asked_.interface); }
  std::optional<std::string> route_out(const std::string& bound);
  std::optional<std::string> first_route();
  std::optional<bool> is_connected();
  [[nodiscard]] bool answers_unbound() const;
  std::optional<bool> is_bound();
  std::optional<bool> ask_socket(const char* subject);
  // The interface that its socket is bound to when it is routed again. Nothing: seen.
  std::optional<std::string> bound_again();
  // ip_route_me_harder. False: there is no route, the packet is gone.
  bool reroute(const std::string& because);
  [[nodiscard]] RouteLookup look_up(const std::string& in, const std::string& bound, bool with_source = true) const;
  // The route that it takes. Of several next hops the kernel takes one for each connection; each is followed, for
  // who observes the first one.
  void take_way(const std::string& in, const std::string& bound, bool with_source = true);
  std::optional<std::string> cannot_be_sent() const;
  void end_outside(Outcome::Kind kind);  // of the pod, by the interface of its route
  [[nodiscard]] bool is_up(const std::string& device) const;
  // ": the destination is the pod itself"; empty of what goes on.
  [[nodiscard]] std::string why_it_stays() const;
  // A route or a policy rule that asks for more than is followed.
  void route_not_known();

  // ---- packet_source.cc
  // The source of what came in is checked when its way is known (__fib_validate_source). False: the packet is dropped
  // for it, or it is unknown whether it is.
  bool takes_source();

  // ---- packet_hooks.cc: what the kernel calls at a hook
  // False: the packet is gone.
  bool calls(Hook at, const std::string& device = {});
  // A chain of type route looks up the route again where a rule changed the mark (ipt_mangle_out, nf_route_table_hook).
  ChainResult rules(const Call& call, Hook at);
  // By priority. Of equal ones the kernel asks the one that was registered last first, and cannot be asked which that
  // was: any may be the next one. Ends with the first that is not passed on.
  template <typename One>
  ChainResult in_order(const std::vector<Call>& all, const One& one);
  template <typename One>
  ChainResult in_any_order(std::vector<Call> equal, const One& one);
  std::optional<std::size_t> next_of(const std::vector<Call>& equal);
  // The chains of type nat. They are asked once in a connection's life: for the destination in PREROUTING or OUTPUT,
  // for the source in INPUT or POSTROUTING (nf_nat_inet_fn). The first one that translates ends the search; ACCEPT does
  // not. False: the packet is gone.
  bool nat(Hook at);
  bool not_asked(Hook at, const char* because);
  ChainResult ask(const BaseChain& base);
  // Tells whether rules that are asked after watch_mark() leave the mark as it was, or set it to that.
  struct MarkBefore {
    std::uint32_t mark;
    std::uint32_t own_bits;
  };
  MarkBefore watch_mark();
  bool has_mark_of(const MarkBefore& before);

  // ---- packet_connection.cc: what the kernel knows of the connection
  void conntrack();
  // An answer in another conntrack zone than its request begins a connection of its own, if it can.
  void leave_connection();
  // What its first packet made of the connection: an established one is not decided about again. False: that cannot be
  // known, or was seen.
  bool first_packet();
  // A later packet, as the first one was.
  void translate(bool of_destination);
  // An answer, back.
  void translate_answer(bool of_destination);
  // Whether a packet has other addresses or ports than it was sent with, by that.
  [[nodiscard]] bool is_another(const std::optional<Translation>& made) const;
  // "they are tracked in conntrack zone 1 (rule 1 of raw ISTIO_INBOUND), the request in zone 0"
  [[nodiscard]] std::string zones_of(const PacketWalk& answer) const;
  // Whether the later packets of a TCP connection, which meet the rules as such, end where its first one did: else
  // nothing is answered. Nothing: seen.
  std::optional<Outcome> with_later_packets(Outcome outcome, std::optional<std::uint32_t> connmark);
  // Whether the later answers of a TCP connection end where its first one did, which has other flags: else they are
  // lost. `connmark` is the connection's mark as the first one left it, and then as they leave it. Nothing: seen.
  std::optional<Outcome> with_later_answers(Outcome outcome, const PacketWalk& first,
                                            std::optional<std::uint32_t>& connmark);
  // The walk of the answer to what ended so.
  [[nodiscard]] PacketWalk answer_to(const Outcome& outcome, AnswerPlace place = AnswerPlace::first) const;

  // ---- packet_neighbours.cc
  // The next hop is found by ARP, or by neighbour discovery, which passes the rules of IPv6 as any packet does.
  // What is found already is known for a while.
  void look_for_neighbour();
  friend std::string outcome_of_discovery(const PodView& pod, FamilyRules& rules, const std::string& device);

  // ---- packet_key.cc: for who observes
  // After this call of the hook; none: before the first one; no hook: before all or at the end. False: the packet need
  // not be followed.
  bool checkpoint(std::optional<Hook> at, const Call* after = nullptr);
  // What of this walk decides about the rest of it, or of those that it waits for.
  void add_to(StateKey& key, std::uint32_t own_mark) const;
  void add_mark(StateKey& key, std::uint32_t own_mark) const;
  void add_rule(StateKey& key, const std::vector<std::size_t>& reasons) const;

  WalkContext& context_;
  const PodView& pod_;
  FamilyRules& rules_;
  const PacketWalk* outer_;
  const Packet asked_;

  bool has_ended_ = false;  // what its answers meet is asked
  WalkState packet_;
  RouteLookup way_;
  std::string lost_socket_;    // why what TPROXY gave is lost
  std::string translated_by_;  // by the rule that decided about the first packet
};

// Returns why a neighbour at the device may not be found; empty: it is. Found out once for all packets.
[[nodiscard]] const std::string& why_no_neighbour(const PodView& pod, FamilyRules& rules, const std::string& device);

}  // namespace sidetrack
