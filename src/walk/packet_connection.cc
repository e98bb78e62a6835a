// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "walk/observer.h"
#include "walk/packet_walk.h"

namespace sidetrack {
namespace {

// Returns ", by rule 9 of nat ISTIO_OUTPUT": the last one that is a reason for the outcome, if there is any.
std::string by_rule(const Trace& trace) {
  return trace.decisive.empty() ? "" : ", by " + rule_of(trace.steps[trace.decisive.back()]);
}

// The outcome of a first packet whose later ones, or their answers, end elsewhere.
Outcome ends_elsewhere(Outcome outcome, const char* which, const Outcome& end) {
  const bool known = end.kind != Outcome::Kind::unknown;
  outcome.answers = known ? Outcome::Answers::lost : Outcome::Answers::unknown;
  outcome.answers_why = known ? fmt::format("{} end elsewhere: {}", which, sentence(end)) : end.why;
  return outcome;
}

// Tells whether a rule drops it of which it is unknown whether it matches.
bool is_dropped_by_choice(const WalkState& packet) {
  const Trace& trace = packet.trace;
  if (trace.outcome.kind != Outcome::Kind::dropped || packet.capture.empty() || packet.capture.back() == 0)
    return false;
  const Step& step = trace.steps[packet.capture.back()];
  const Step& before = trace.steps[packet.capture.back() - 1];
  return before.kind == Step::Kind::unknown && before.live == step.live;
}

}  // namespace

void PacketWalk::conntrack() {
  if (packet_.by_lo && packet_.now.tracked) {
    packet_.kernel("conntrack: tracked already, in OUTPUT");
    return;
  }
  if (packet_.now.untracked) return packet_.kernel("conntrack: not tracked");
  if (rules_.tracking() == FamilyRules::Tracking::no) return packet_.kernel("conntrack: off, as no rule needs it");
  if (packet_.now.state == ConnectionState::reply && !packet_.request.empty() &&
      packet_.zone.value_or(0) != packet_.request.back().zone.value_or(0)) {
    leave_connection();
  }
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

// Neither tcp (a SYN-ACK) nor icmp (a reply) begins a connection with what answers another.
void PacketWalk::leave_connection() {
  packet_.zone_apart = true;
  packet_.now.connection = {};
  const bool begins_one = std::ranges::none_of(std::array{Protocol::tcp, Protocol::icmp, Protocol::icmpv6},
                                               [&](Protocol protocol) { return is_of(protocol, packet_.now); });
  packet_.now.state = begins_one ? ConnectionState::new_ : ConnectionState::invalid;
  packet_.now.connmark = begins_one ? std::optional<std::uint32_t>(0) : std::nullopt;
}

bool PacketWalk::is_another(const std::optional<Translation>& made) const {
  if (!made) return false;
  if (!made->after_known || made->after.port != made->before.port) return true;
  return !keeps_address(*made, observer());
}

std::string PacketWalk::zones_of(const PacketWalk& answer) const {
  const auto zone = [](const WalkState& packet) {
    if (packet.zoned.empty()) return fmt::format("zone {}", packet.zone.value_or(0));
    return fmt::format("zone {} ({})", *packet.zone, rule_of(packet.trace.steps[packet.zoned.back()]));
  };
  if (observer() != nullptr) return {};
  return fmt::format("they are tracked in conntrack {}, the request in {}", zone(answer.packet_), zone(packet_));
}

bool PacketWalk::first_packet() {
  Packet first = asked_;
  first.state = ConnectionState::new_;
  PacketWalk walk(first, context_, this);
  walk.run();
  packet_.seen = walk.seen();
  if (walk.seen()) return false;
  packet_.first = walk.trace().outcome;
  // No connection begins by a way on which a rule drops its first packet that may not match.
  if (packet_.first->kind == Outcome::Kind::unknown || is_dropped_by_choice(walk.packet_)) {
    packet_.trace.steps = walk.trace().steps;
    // Which rules left it alone on the way is not in the state (see packet_key.cc).
    packet_.trace.decisive = observer() == nullptr ? walk.trace().decisive : walk.packet_.capture;
    packet_.trace.outcome = *packet_.first;
    return false;
  }
  packet_.now.connection = walk.packet_.now.connection;
  translated_by_ = by_rule(walk.trace());
  if (!asked_.connmark && rules_.mark_connections()) {
    // An answer came before a later packet does, and may have changed the mark.
    walk.has_ended_ = true;
    packet_.now.connmark = walk.packet_.now.connmark;
    if (packet_.first->arrives()) {
      PacketWalk answer = walk.answer_to(*packet_.first);
      answer.run();
      packet_.seen = answer.seen();
      if (answer.seen()) return false;
      packet_.now.connmark = answer.packet_.now.connmark;
    }
  }
  if (packet_.first->kind == Outcome::Kind::dropped) {
    packet_.doubt("the first packet of such a connection is dropped: there is none, if the rules were the same then");
  }
  return true;
}

void PacketWalk::translate(bool of_destination) {
  const auto& made = of_destination ? packet_.now.connection.destination : packet_.now.connection.source;
  if (!made || (of_destination ? packet_.destination_decided : packet_.source_decided)) return;
  if (of_destination) {
    packet_.original = packet_.now.destination;
    packet_.now.destination = made->after;
    packet_.destination_decided = true;
    packet_.kernel(
        [&] { return fmt::format("redirected to {}, as the first packet was{}", made->after.text(), translated_by_); });
  } else {
    packet_.now.source = made->after;
    packet_.now.source_known = made->after_known;
    packet_.source_decided = true;
    packet_.kernel("its source is translated, as the first packet's was");
  }
}

void PacketWalk::translate_answer(bool of_destination) {
  const auto& made = of_destination ? packet_.now.connection.source : packet_.now.connection.destination;
  if (!made) return;
  (of_destination ? packet_.now.destination : packet_.now.source) = made->before;
  packet_.kernel([&] {
    return fmt::format("its {} is {} again", of_destination ? "destination" : "source", made->before.text());
  });
}

std::optional<Outcome> PacketWalk::with_answers() {
  Outcome outcome = packet_.trace.outcome;
  const auto end = [&](Outcome::Answers what, std::string why) {
    outcome.answers = what;
    outcome.answers_why = std::move(why);
    return outcome;
  };
  const bool lands = outcome.kind == Outcome::Kind::lands;
  const bool forwarded = outcome.kind == Outcome::Kind::forwarded;
  if (!outcome.arrives() || asked_.state != ConnectionState::new_) return outcome;
  has_ended_ = true;
  if (!checkpoint({})) return {};
  const PacketAtHook& now = packet_.now;
  const Address& from = now.source.address;
  // ::6, if the kernel chose it, is no address that anybody else has a route to.
  static const AddressRange passthrough = AddressRange::single(Address::passthrough(Family::ipv6));
  const bool is_passthrough = !context_.source_chosen && contains(passthrough, from, observer());
  const bool foreign_source = outcome.kind == Outcome::Kind::leaves &&
                              (is_passthrough || is_loopback(from, observer()) || !is_local(pod_, from, observer()));
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
  if (lands && pod_.ignored_echos.contains(packet_.family) && !has_ports())
    return end(Outcome::Answers::lost, "the kernel answers no ping (icmp echo_ignore_all)");
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
  const bool seen_as_sent = !packet_.original || packet_.now.connection.source;
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
  const bool apart = answer.packet_.zone_apart;
  const std::string zones = apart ? zones_of(answer) : "";
  // Its later packets would be picked up as connections of their own (nf_conntrack_tcp_loose).
  if (apart && is_of(Protocol::tcp, packet_.now)) {
    return end(Outcome::Answers::unknown, zones);
  }
  const Outcome::Kind expected = forwarded                                    ? Outcome::Kind::forwarded
                                 : lands && asked_.direction == Direction::in ? Outcome::Kind::leaves
                                                                              : Outcome::Kind::lands;
  // TPROXY takes them from a socket that is connected, too, and gives them to none then.
  if (asked_.direction != Direction::in && back.outcome.transparent && is_of(Protocol::udp, packet_.now)) {
    return end(Outcome::Answers::lost,
               fmt::format("they go to the listener on port {}{}", back.outcome.transparent_port, by_rule(back)));
  }
  // What was translated is not translated back.
  const bool from_elsewhere =
      apart &&
      (is_another(packet_.now.connection.destination) || is_another(packet_.now.connection.source) ||
       is_another(answer.packet_.now.connection.destination) || is_another(answer.packet_.now.connection.source));
  if (back.outcome.kind == expected && from_elsewhere) {
    return end(Outcome::Answers::lost, zones + ": they come from another address or port than the request went to");
  }
  if (back.outcome.kind == expected) {
    std::optional<std::uint32_t> connmark = answer.packet_.now.connmark;
    const std::optional<Outcome> later = with_later_answers(outcome, answer, connmark);
    if (!later || later->answers != outcome.answers) return later;
    return with_later_packets(outcome, connmark);
  }
  if (back.outcome.kind == Outcome::Kind::unknown) return end(Outcome::Answers::unknown, back.outcome.why);
  std::string because = apart ? zones + ": " : "";
  if (lands && answer.asked_.mark != 0) {
    because +=
        fmt::format("{} is 1, so they have the mark {:#x}: ", has_ports() ? "tcp_fwmark_accept" : "fwmark_reflect",
                    answer.asked_.mark);
  }
  if (back.outcome.kind == Outcome::Kind::lands) {
    return end(Outcome::Answers::lost, because + "they stay in the pod" + by_rule(back));
  }
  return end(Outcome::Answers::lost, because + sentence(back.outcome));
}

std::optional<Outcome> PacketWalk::with_later_packets(Outcome outcome, std::optional<std::uint32_t> connmark) {
  if (!packet_.meets_state && connmark == packet_.now.connmark) return outcome;  // nothing tells them from it
  if (!is_of(Protocol::tcp, packet_.now)) return outcome;
  Packet packet = asked_;
  packet.state = ConnectionState::established;
  PacketWalk later(packet, context_, this);
  later.packet_.first = outcome;
  later.packet_.now.connection = packet_.now.connection;
  later.packet_.now.connmark = connmark;
  later.translated_by_ = by_rule(packet_.trace);
  later.run();
  if (later.seen()) return {};
  const Outcome& end = later.trace().outcome;
  return same_place(end, outcome) ? outcome : ends_elsewhere(outcome, "the later packets of its connection", end);
}

std::optional<Outcome> PacketWalk::with_later_answers(Outcome outcome, const PacketWalk& first,
                                                      std::optional<std::uint32_t>& connmark) {
  if (!rules_.ask_flags() || !first.packet_.meets_state) return outcome;  // nothing tells them from it
  if (!is_of(Protocol::tcp, packet_.now)) return outcome;
  PacketWalk later = answer_to(outcome, AnswerPlace::later);
  later.packet_.now.connmark = connmark;
  later.run();
  if (later.seen()) return {};
  connmark = later.packet_.now.connmark;
  const Outcome& end = later.trace().outcome;
  const bool is_same = end.kind == first.trace().outcome.kind;
  return is_same ? outcome : ends_elsewhere(outcome, "those after the first one", end);
}

PacketWalk PacketWalk::answer_to(const Outcome& outcome, AnswerPlace place) const {
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
  const bool by_socket = has_ports();  // else the kernel itself answers
  const bool is_tcp = is_of(Protocol::tcp, packet_.now);
  const bool keeps_mark = by_socket ? is_tcp && pod_.tcp_fwmark_accept : pod_.fwmark_reflect.contains(packet_.family);
  if (lands && keeps_mark) answer.mark = packet_.now.mark;
  PacketWalk walk(answer, context_, this);
  if (lands && keeps_mark) walk.packet_.now.own_bits = packet_.now.own_bits;
  walk.packet_.now.source = packet_.now.destination;
  walk.packet_.now.destination = packet_.now.source;
  walk.packet_.now.connection = packet_.now.connection;
  walk.packet_.request.push_back(packet_);
  walk.packet_.now.ephemeral_ports = packet_.now.ephemeral_ports;
  walk.packet_.now.owner_known = !lands || !by_socket;  // the listener's
  walk.packet_.now.answer = place;
  return walk;
}

}  // namespace sidetrack
