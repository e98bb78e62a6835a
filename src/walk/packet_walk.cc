// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk/packet_walk.h"

#include <fmt/format.h>

#include <algorithm>

#include "mesh/describe.h"
#include "model/ports.h"
#include "walk/frames.h"
#include "walk/observer.h"

namespace sidetrack {
namespace {

constexpr std::size_t usual_steps = 24;  // of packets that are followed by the thousand

// Returns all bits if routing again may find another way whatever the mark has become.
std::uint32_t marks_asked_by(const PodView& pod) {
  std::uint32_t bits = 0;
  for (const PolicyRule& rule : pod.rules) {
    const bool asks_more = rule.from || !rule.in.empty() || !rule.out.empty() || !rule.more.empty();
    bits |= asks_more ? ~0U : rule.mask;
  }
  return bits;
}

}  // namespace

WalkContext::WalkContext(const PodView& pod_, FamilyRules& rules_, Observer* observer_)
    : pod(pod_),
      rules(rules_),
      observer(observer_),
      asked_marks(rules.asked_marks() | marks_asked_by(pod)),
      forks(asked_marks) {}

PacketWalk::PacketWalk(const Packet& asked, WalkContext& context, const PacketWalk* outer)
    : context_(context), pod_(context.pod), rules_(context.rules), outer_(outer), asked_(asked) {
  packet_.family = asked_.destination->family;
  packet_.trace.packet = asked_;
  packet_.now.protocol = asked_.protocol;
  packet_.now.source = {*asked_.source, asked_.source_port, context_.source, Origin::source};
  packet_.now.destination = {*asked_.destination, asked_.destination_port, context_.destination, Origin::destination};
  packet_.now.mark = asked_.mark;
  if (context_.observer != nullptr && asked.state != ConnectionState::reply) packet_.now.own_bits = ~0U;
  packet_.now.owner = asked_.owner;
  packet_.now.cgroup = asked_.cgroup;
  packet_.now.state = asked_.state;
  packet_.now.tracked = false;
  packet_.now.ephemeral_ports = pod_.ephemeral_ports;
  packet_.now.pod = &pod_;
  packet_.now.observer = context_.observer;
  packet_.is_brief = context_.is_brief || context_.observer != nullptr;
  if (context_.observer != nullptr) packet_.trace.steps.reserve(usual_steps);
  if (asked_.state != ConnectionState::invalid) packet_.now.connmark = asked_.connmark.value_or(0);
}

void PacketWalk::run() {
  if (!checkpoint({})) return;
  if (asked_.state == ConnectionState::established && !packet_.first) {
    if (asked_.began_before) {
      packet_.first = Outcome{};
      packet_.first->kind = asked_.direction == Direction::out ? Outcome::Kind::leaves : Outcome::Kind::lands;
      packet_.first->at = packet_.now.destination;
    } else if (!first_packet()) {
      return;
    }
  }
  if (asked_.direction == Direction::in) {
    packet_.now.in = asked_.interface;
    prerouting();
  } else {
    output();
  }
  if (asked_.state == ConnectionState::new_ && !packet_.discovery && !packet_.seen) look_for_neighbour();
  packet_.trace.decisive = packet_.capture.empty() ? packet_.left_alone : packet_.capture;
  packet_.trace.translated = packet_.original.has_value();
}

void PacketWalk::output() {
  const auto fault = first_route();
  if (packet_.seen) return;
  if (fault) return packet_.end(Outcome::Kind::unroutable, *fault);
  if (way_.kind == RouteLookup::Kind::unknown) return route_not_known();
  // For the whole of OUTPUT: a new route changes it only after the hook (nf_hook_state).
  packet_.now.out = way_.device;
  packet_.hook([&] { return fmt::format("OUTPUT, out by {}{}", way_.device, why_it_stays()); });
  if (!calls(Hook::output)) return;
  if (!postrouting(way_.device)) return;
  if (!is_up(way_.device)) return packet_.drop(fmt::format("interface {} is down", way_.device));
  if (way_.device == "lo") {
    packet_.by_lo = true;
    packet_.now.in = "lo";
    packet_.now.out.clear();
    packet_.now.owner.reset();
    packet_.now.cgroup.reset();
    packet_.now.owner_known = true;
    prerouting();
  } else {
    end_outside(Outcome::Kind::leaves);
    packet_.trace.outcome.original = packet_.original;
  }
}

void PacketWalk::prerouting() {
  if (!below_device(Hook::ingress, packet_.now.in) || !at_device(Hook::ingress, packet_.now.in)) return;
  packet_.hook([&] { return fmt::format("PREROUTING, in by {}", packet_.now.in); });
  const bool loopback =
      is_loopback(packet_.now.destination.address, observer()) || is_loopback(packet_.now.source.address, observer());
  if (!packet_.by_lo && loopback && packet_.family == Family::ipv6) {  // ip6_rcv_core, before any hook
    return packet_.drop("loopback addresses do not come in by " + packet_.now.in);
  }
  if (!packet_.by_lo && has_ipv6_off(packet_.now.in)) return;
  if (!calls(Hook::prerouting)) return;
  if (packet_.transparent && bridge_calls_rules()) {
    lost_socket_ = fmt::format("the bridge {} calls the rules (bridge-nf-call-{}tables), and what TPROXY gives is lost",
                               packet_.now.in, packet_.family == Family::ipv4 ? "ip" : "ip6");
    packet_.kernel([&] { return lost_socket_; });
    packet_.transparent.reset();
    packet_.capture.clear();
  }
  routing();
}

bool PacketWalk::bridge_calls_rules() const {
  const auto calls_rules = [&](const Interface& each) { return each.rules_of_frames.contains(packet_.family); };
  if (packet_.by_lo || std::ranges::none_of(pod_.interfaces, calls_rules)) return false;
  if (observer() != nullptr) observer()->interface();
  const Interface* found = pod_.interface(packet_.now.in);
  return found != nullptr && calls_rules(*found);
}

void PacketWalk::routing() {
  // Keeps the route by which it went out by lo (ip_rcv_finish_core finds a valid dst): it stays here, in IPv6 only if
  // that is a local one (ip6_rt_init_dst).
  if (packet_.by_lo && packet_.family == Family::ipv6 && way_.kind == RouteLookup::Kind::unicast) {
    return packet_.drop(fmt::format("its route leads back here by lo, and {} is not the pod's",
                                    packet_.now.destination.address.text()));
  }
  if (packet_.by_lo || packet_.discovery) return input();  // discovery is to an own address, or to a group of it
  const Address& destination = packet_.now.destination.address;
  const Address& source = packet_.now.source.address;
  if (destination.family == Family::ipv4) {  // ip_route_input_slow
    const bool route_localnet = has_setting(&Interface::route_localnet, packet_.now.in);
    const bool accept_local = has_setting(&Interface::accept_local, packet_.now.in);
    const bool to_loopback = is_loopback(destination, observer());
    const bool from_loopback = is_loopback(source, observer());
    if (route_localnet && from_loopback && !accept_local) {  // by the address itself, or by all of its network
      return packet_.not_known(fmt::format("whether {} can come in by {}: route_localnet is set, accept_local is not",
                                           source.text(), packet_.now.in),
                               "whether loopback addresses are own ones");
    }
    const bool refuses_loopback = !route_localnet && (to_loopback || from_loopback);
    if (refuses_loopback || (!accept_local && is_local(pod_, source, observer()))) {
      const Address& martian = refuses_loopback && to_loopback ? destination : source;
      return packet_.drop(fmt::format("{} cannot come in by {} (martian)", martian.text(), packet_.now.in));
    }
  } else if (is_loopback(destination, observer())) {  // by a translation
    return packet_.not_known(fmt::format("whether {} can be reached by {}", destination.text(), packet_.now.in),
                             "whether loopback addresses can be reached from outside");
  }
  take_way(packet_.now.in, "");
  if (way_.kind == RouteLookup::Kind::unknown) return route_not_known();
  if (way_.exists() && !takes_source()) return;
  if (way_.stays()) {
    packet_.kernel([&] { return fmt::format("routing: stays here{}", why_it_stays()); });
    return input();
  }
  packet_.kernel([&] { return fmt::format("routing: {} is not the pod's", destination.text()); });
  if (packet_.transparent)
    return packet_.drop("a packet with a socket cannot be forwarded (ip_forward), and no route by mark keeps it here");
  if (!way_.exists()) return packet_.drop("there is " + no_route(way_, destination));
  packet_.hook([&] { return fmt::format("FORWARD, in by {}, out by {}", packet_.now.in, way_.device); });
  packet_.now.out = way_.device;
  if (!calls(Hook::forward) || !postrouting(way_.device)) return;
  end_outside(Outcome::Kind::forwarded);
}

bool PacketWalk::has_ipv6_off(const std::string& device) {
  if (packet_.family == Family::ipv4 || !has_setting(&Interface::disable_ipv6, device)) return false;
  packet_.drop(fmt::format("IPv6 is off on {0} (net.ipv6.conf.{0}.disable_ipv6)", device));
  return true;
}

bool PacketWalk::postrouting(const std::string& device) {
  packet_.now.out = device;
  if (has_ipv6_off(device)) return false;
  if (has_rules(Hook::postrouting)) packet_.hook([&] { return fmt::format("POSTROUTING, out by {}", device); });
  return calls(Hook::postrouting) && at_device(Hook::egress, device) && below_device(Hook::egress, device);
}

bool PacketWalk::at_device(Hook hook, const std::string& device) {
  if (rules_.at(hook, device).empty()) return true;
  packet_.hook([&] { return fmt::format("{} of {}", name(hook), device); });
  return calls(hook, device);
}

bool PacketWalk::below_device(Hook hook, const std::string& device) {
  const std::string reason = rules_of_frames(pod_, rules_.live(), hook, device);
  if (reason.empty()) return true;
  packet_.not_known(
      fmt::format("whether it gets {} {}: {}", hook == Hook::ingress ? "in by" : "out by", device, reason),
      "whether frames pass: " + reason);
  return false;
}

bool PacketWalk::has_setting(bool Interface::*setting, const std::string& interface) const {
  if (std::ranges::none_of(pod_.interfaces, [&](const Interface& each) { return each.*setting; })) return false;
  if (observer() != nullptr) observer()->interface();
  const Interface* found = pod_.interface(interface);
  return found != nullptr && found->*setting;
}

void PacketWalk::input() {
  if (has_rules(Hook::input)) packet_.hook([&] { return fmt::format("INPUT, in by {}", packet_.now.in); });
  // The socket of a connection that is there already is looked up before (tcp_v4_early_demux), if the sysctl says so.
  if (packet_.now.state != ConnectionState::new_) packet_.now.owner_known = false;
  if (calls(Hook::input)) land();
}

void PacketWalk::land() {
  const std::optional<Endpoint>& original = packet_.original;
  packet_.end(Outcome::Kind::lands, "");
  Outcome& outcome = packet_.trace.outcome;
  outcome.original = original;
  outcome.why = lost_socket_;
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
  } else if (packet_.now.destination.port) {
    outcome.listener = listener_of(*packet_.now.destination.port);
  }
}

std::string PacketWalk::listener_of(std::uint16_t port) const {
  const Rule* captor = packet_.capture.empty() ? nullptr : &packet_.trace.steps[packet_.capture.back()].live->rule;
  const auto known = captor != nullptr ? port_name(port, *captor) : port_name(port);
  if (!known.empty()) return std::string(known);
  if (captor == nullptr) return packet_.original ? "" : "the app";
  switch (describe(*captor).rule) {
    case MeshRule::outbound_listener:
      return "the proxy's outbound listener";
    case MeshRule::inbound_listener:
    case MeshRule::tproxy_listener:
      return "the proxy's inbound listener";
    default:
      return "";
  }
}

bool PacketWalk::has_ports() const {
  if (observer() != nullptr) observer()->has_ports();
  return sidetrack::has_ports(asked_.protocol);
}

bool PacketWalk::has_rules_of_nat(Hook at) const { return !rules_.of_nat(at).empty(); }

bool PacketWalk::has_rules(Hook at) const {
  const auto& found = rules_.at(at);
  return has_rules_of_nat(at) || std::ranges::find(found, Call::Kind::rules, &Call::kind) != found.end();
}

}  // namespace sidetrack
