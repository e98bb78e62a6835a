// SPDX-License-Identifier: GPL-2.0-or-later
#include "sidetrack/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyse/fill_in.h"
#include "analyse/in_flight.h"
#include "analyse/route.h"
#include "analyse/rule_walk.h"
#include "sidetrack/ports.h"

namespace sidetrack {
namespace {

// ", by rule 9 of nat ISTIO_OUTPUT": the last one that is a reason for the ending, if there is any.
std::string by_rule(const Trace& trace) {
  return trace.decisive.empty() ? "" : ", by " + rule_of(trace.steps[trace.decisive.back()]);
}

class Walk {
 public:
  Walk(const Packet& packet, const PodView& pod, std::span<const Live* const> live)
      : pod_(pod), live_(live), asked_(filled_in(packet, pod)) {}

  Trace run() {
    packet_.family = asked_.destination->family;
    packet_.trace.packet = asked_;
    packet_.now.protocol = asked_.protocol;
    packet_.now.source = {*asked_.source, asked_.source_port};
    packet_.now.destination = {*asked_.destination, asked_.destination_port};
    packet_.now.mark = asked_.mark;
    packet_.now.owner = asked_.owner;
    packet_.now.state = asked_.state;
    if (asked_.state != ConnectionState::invalid) packet_.now.connmark = asked_.connmark.value_or(0);
    if (asked_.state == ConnectionState::established) first_packet();
    if (asked_.way == Way::in) {
      packet_.now.in = asked_.interface;
      prerouting();
    } else {
      output();
    }
    packet_.trace.decisive = packet_.capture.empty() ? packet_.left_alone : packet_.capture;
    return std::move(packet_.trace);
  }

  // Nothing if the answers to what has left by `ending` come back to where the packet came from; else what becomes of
  // them. They meet the rules as packets of a connection that is known: TPROXY's take them for the proxy's own.
  [[nodiscard]] std::string lost_answers(const Ending& ending) const {
    const bool forwarded = ending.kind == Ending::Kind::forwarded;
    if ((!forwarded && ending.kind != Ending::Kind::leaves) || asked_.state != ConnectionState::new_) return "";
    Packet answer;
    answer.way = Way::in;
    answer.protocol = asked_.protocol;
    answer.source = ending.at.address;
    answer.source_port = ending.at.port;
    answer.destination = asked_.source;
    answer.destination_port = asked_.source_port;
    answer.interface = ending.interface;
    answer.state = ConnectionState::reply;
    answer.connmark = packet_.now.connmark;
    const Trace back = Walk(answer, pod_, live_).run();
    if (back.ending.kind == (forwarded ? Ending::Kind::forwarded : Ending::Kind::lands)) return "";
    return back.ending.kind == Ending::Kind::lands ? "they are kept in the pod" + by_rule(back) : sentence(back.ending);
  }

 private:
  // ---- The way of the packet

  // What its first packet made of the connection: an established one is not decided about again.
  void first_packet() {
    Packet first = asked_;
    first.state = ConnectionState::new_;
    Walk walk(first, pod_, live_);
    const Trace trace = walk.run();
    first_ = trace.ending;
    packet_.translation = walk.packet_.translation;
    translated_by_ = by_rule(trace);
    if (!asked_.connmark) packet_.now.connmark = walk.packet_.now.connmark;
    if (first_->kind == Ending::Kind::dropped) {
      packet_.doubt("the first packet of such a connection is dropped: there is none, if the rules were the same then");
    }
  }

  void output() {
    auto way = route(pod_, packet_.now.destination.address, packet_.now.mark, asked_.interface);
    if (!way) {
      packet_.trace.ending.kind = Ending::Kind::unroutable;
      packet_.trace.ending.at = packet_.now.destination;
      packet_.trace.ending.why = fmt::format("no route to {}", packet_.now.destination.address.text());
      return;
    }
    // For the whole of OUTPUT: a new route changes it only behind the hook (nf_hook_state).
    packet_.now.out = way->device;
    packet_.hook(fmt::format("OUTPUT, out by {}{}", way->device, why(*way)));
    if (!tables(Hook::output, Table::raw)) return;
    conntrack();
    const std::uint32_t mark = packet_.now.mark;
    if (!tables(Hook::output, Table::mangle)) return;
    if (packet_.now.mark != mark) reroute(way, fmt::format("the mark is now {}", packet_.now.mark));
    const Address before = packet_.now.destination.address;
    if (!nat(Hook::output)) return;
    if (packet_.now.destination.address != before) reroute(way, "the destination is another");
    if (!way) return;
    if (!postrouting(way->device)) return;
    if (way->device == "lo") {
      by_lo_ = true;
      packet_.now.in = "lo";
      packet_.now.out.clear();
      packet_.now.owner.reset();
      prerouting();
    } else {
      packet_.trace.ending.kind = Ending::Kind::leaves;
      packet_.trace.ending.at = packet_.now.destination;
      packet_.trace.ending.interface = way->device;
    }
  }

  // ip_route_me_harder
  void reroute(std::optional<Route>& way, const std::string& because) {
    way = route(pod_, packet_.now.destination.address, packet_.now.mark, asked_.interface);
    if (!way) {
      packet_.drop(fmt::format("{}, and there is no route to {}", because, packet_.now.destination.address.text()));
      return;
    }
    packet_.kernel(fmt::format("routing again, as {}: out by {}{}", because, way->device, why(*way)));
  }

  static std::string why(const Route& way) {
    switch (way.kind) {
      case Route::Kind::local:
        return ": the destination is the pod itself";
      case Route::Kind::by_mark:
        return fmt::format(": fwmark {} looks up table {}, local default dev lo", way.rule->mark, way.rule->table);
      case Route::Kind::onward:
        return "";
    }
    return "";
  }

  void prerouting() {
    packet_.hook(fmt::format("PREROUTING, in by {}", packet_.now.in));
    const bool loopback = packet_.now.destination.address.is_loopback() || packet_.now.source.address.is_loopback();
    if (!by_lo_ && loopback &&
        packet_.now.destination.address.family == Family::ipv6) {  // ip6_rcv_core, before any hook
      return packet_.drop("loopback addresses do not come in by " + packet_.now.in);
    }
    if (!tables(Hook::prerouting, Table::raw)) return;
    conntrack();
    if (!tables(Hook::prerouting, Table::mangle)) return;
    if (!nat(Hook::prerouting)) return;
    routing();
  }

  void routing() {
    // What went out by lo brings its route along (ip_rcv_finish_core finds a valid dst): it stays here.
    if (by_lo_) return input();
    const Address& destination = packet_.now.destination.address;
    if (destination.family == Family::ipv4 && (destination.is_loopback() || packet_.now.source.address.is_loopback() ||
                                               is_local(pod_, packet_.now.source.address))) {
      const Address& martian = destination.is_loopback() ? destination : packet_.now.source.address;
      return packet_.drop(fmt::format("{} cannot come in by {} (martian)", martian.text(), packet_.now.in));
    }
    const auto way = route(pod_, destination, packet_.now.mark, "");
    if (way && way->stays()) {
      packet_.kernel(fmt::format("routing: stays here{}", why(*way)));
      return input();
    }
    packet_.kernel(fmt::format("routing: {} is not the pod's", destination.text()));
    if (packet_.transparent)
      return packet_.drop(
          "a packet with a socket cannot be forwarded (ip_forward), and no route by mark keeps it here");
    if (!way) return packet_.drop(fmt::format("there is no route to {}", destination.text()));
    packet_.hook(fmt::format("FORWARD, in by {}, out by {}", packet_.now.in, way->device));
    packet_.now.out = way->device;
    if (!tables(Hook::forward, Table::mangle) || !postrouting(way->device)) return;
    packet_.trace.ending.kind = Ending::Kind::forwarded;
    packet_.trace.ending.at = packet_.now.destination;
    packet_.trace.ending.interface = way->device;
  }

  bool postrouting(const std::string& device) {
    packet_.now.out = device;
    if (!has_rules(Hook::postrouting)) {
      source_decided_ = true;
      return true;
    }
    packet_.hook(fmt::format("POSTROUTING, out by {}", device));
    return tables(Hook::postrouting, Table::mangle) && nat(Hook::postrouting);
  }

  void input() {
    if (has_rules(Hook::input)) {
      packet_.hook(fmt::format("INPUT, in by {}", packet_.now.in));
      if (!tables(Hook::input, Table::mangle) || !nat(Hook::input)) return;
    }
    land();
  }

  void land() {
    Ending& ending = packet_.trace.ending;
    ending.kind = Ending::Kind::lands;
    ending.at = packet_.now.destination;
    ending.original = packet_.original;
    if (packet_.transparent) {
      ending.transparent = true;
      ending.transparent_port = *packet_.transparent;
      ending.listener = listener_of(*packet_.transparent);
    } else if (first_ && first_->transparent) {
      ending = *first_;  // its socket is found by the connection's addresses, which TPROXY did not change
    } else if (packet_.now.protocol == Protocol::icmp || packet_.now.protocol == Protocol::icmpv6) {
      ending.listener = "the kernel";
    } else if (packet_.now.state == ConnectionState::reply) {
      ending.listener = "the socket that opened the connection";
    } else {
      ending.listener = listener_of(packet_.now.destination.port);
    }
  }

  // By its number, or else by the chain that sent the packet there.
  [[nodiscard]] std::string listener_of(std::uint16_t port) const {
    if (!port_name(port).empty()) return std::string(port_name(port));
    if (packet_.capture.empty()) return packet_.original ? "" : "the app";
    const std::string& chain = packet_.trace.steps[packet_.capture.back()].chain;
    if (chain == "ISTIO_REDIRECT" || chain == "istio-redirect") return "the proxy's outbound listener";
    if (chain.starts_with("ISTIO_") || chain.starts_with("istio-")) return "the proxy's inbound listener";
    return "";
  }

  // ---- What the kernel does beside the rules

  void conntrack() {
    if (by_lo_ && packet_.tracked) {
      packet_.kernel("conntrack: knows the packet already, from OUTPUT");
      return;
    }
    switch (packet_.now.state) {
      case ConnectionState::new_:
        packet_.kernel(fmt::format("conntrack: a new connection{}",
                                   packet_.zone ? fmt::format(", in zone {}", *packet_.zone) : ""));
        break;
      case ConnectionState::established:
        packet_.kernel("conntrack: a connection that it knows");
        break;
      case ConnectionState::reply:
        packet_.kernel("conntrack: the answer of a connection that it knows");
        break;
      case ConnectionState::invalid:
        packet_.kernel("conntrack: of no connection that it knows");
        return;
    }
    packet_.tracked = true;
  }

  // The nat tables. They are asked once in a connection's life: for the destination in PREROUTING or OUTPUT, for the
  // source in INPUT or POSTROUTING (nf_nat_inet_fn). The first one that translates ends the search; ACCEPT does not.
  bool nat(Hook at) {
    const bool of_destination = at == Hook::output || at == Hook::prerouting;
    bool& decided = of_destination ? destination_decided_ : source_decided_;
    const bool silent = !has_rules(at, Table::nat);
    const auto not_asked = [&](const char* because) {
      if (!silent) packet_.kernel(fmt::format("nat {} is not asked: {}", name(at), because));
      return true;
    };
    switch (packet_.now.state) {
      case ConnectionState::invalid:
        return not_asked("without a connection there is nothing to translate");
      case ConnectionState::reply:
        return not_asked("only the first packet of a connection is decided about");
      case ConnectionState::established:
        not_asked("only the first packet of a connection is decided about");
        if (of_destination && !decided && packet_.translation) translate(*packet_.translation);
        decided = true;
        return true;
      case ConnectionState::new_:
        break;
    }
    if (decided) return not_asked("the connection was decided about on the way out");
    decided = true;
    return tables(at, Table::nat);
  }

  // An established connection's destination.
  void translate(const Endpoint& to) {
    packet_.original = packet_.now.destination;
    packet_.now.destination = to;
    packet_.kernel(fmt::format("redirected to {}, as the first packet was{}", to.text(), translated_by_));
  }

  // ---- The rules

  bool tables(Hook at, Table table) { return walk_rules(packet_, pod_, live_, at, table); }
  [[nodiscard]] bool has_rules(Hook at, std::optional<Table> table = {}) const {
    return sidetrack::has_rules(live_, packet_.family, at, table);
  }

  const PodView& pod_;
  std::span<const Live* const> live_;
  const Packet asked_;

  InFlight packet_;
  bool by_lo_ = false;                // it went out by lo and came in again
  bool destination_decided_ = false;  // by nat, for its connection
  bool source_decided_ = false;
  std::optional<Ending> first_;  // of the connection's first packet, if this one is a later one
  std::string translated_by_;    // by the rule that decided about that one
};

}  // namespace

Trace explain(const Packet& packet, const PodView& pod, std::span<const Live> live) {
  const auto walked = [&](std::span<const Live* const> order) {
    Walk walk(packet, pod, order);
    Trace trace = walk.run();
    trace.ending.answers = walk.lost_answers(trace.ending);
    return trace;
  };
  std::vector<const Live*> order;
  for (const Live& one : live) order.push_back(&one);
  Trace trace = walked(order);

  std::vector<Ending> endings{trace.ending};
  std::vector<const Live*> other = order;
  std::ranges::sort(other);
  do {
    if (other == order) continue;
    const Ending ending = walked(other).ending;
    if (std::ranges::find(endings, ending) != endings.end()) continue;
    endings.push_back(ending);
    std::string names;
    for (const Live* one : other) names += fmt::format("{}{}", names.empty() ? "" : " before ", name(one->backend));
    trace.doubts.push_back(
        fmt::format("several backends hold rules, and which the kernel asks first cannot be seen; if {}: {}", names,
                    sentence(ending)));
  } while (std::ranges::next_permutation(other).found);
  return trace;
}

}  // namespace sidetrack
