// SPDX-License-Identifier: GPL-2.0-or-later
#include "apply/cut_sessions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "model/error.h"
#include "walk/explain.h"
#include "walk/hook_calls.h"
#include "walk/observer.h"

namespace sidetrack {
namespace {

// The next packet of one side of a connection.
enum class Tracked : std::uint8_t { no, yes, never };  // never: nor is it taken up

Packet next_packet(const Session& session, bool comes_in, Tracked tracked) {
  const TcpSocket& socket = session.socket;
  const Endpoint& from = comes_in ? socket.remote : socket.local;
  const Endpoint& to = comes_in ? socket.local : socket.remote;
  Packet packet;
  packet.direction = comes_in ? Direction::in : Direction::out;
  packet.source = from.address;
  packet.source_port = from.port;
  packet.destination = to.address;
  packet.destination_port = to.port;
  if (!comes_in) packet.owner = Owner{socket.uid, socket.uid};
  if (tracked == Tracked::yes) {
    packet.state = comes_in == session.inbound ? ConnectionState::established : ConnectionState::reply;
    packet.began_before = packet.state == ConnectionState::established;
  }
  if (tracked == Tracked::never) packet.state = ConnectionState::invalid;
  return packet;
}

// Of a connection that is tracked, the kernel knows what becomes of its addresses.
space::Side without_nat(space::Side side) {
  for (Live& live : side.live) {
    std::erase_if(live.chains, [](const LiveChain& chain) { return chain.hook && chain.hook->type == ChainType::nat; });
  }
  return side;
}

// All ways that it may end.
std::vector<Outcome> ends_of(const Packet& packet, const space::Side& side) {
  NullObserver observer;
  FamilyRules rules(side.live, packet.destination->family);
  std::vector<Outcome> ends;
  for (Possibility& one : possibilities(packet, side.pod, rules, observer))
    ends.push_back(std::move(one.trace.outcome));
  return ends;
}

// Before and after a change of the rules, of new connections and of those that are tracked.
struct Sides {
  space::Side before;
  space::Side after;
  Tracked tracked[2] = {Tracked::no, Tracked::no};  // of IPv4 and IPv6

  // Where the session's next packet of one way ends, if it has not ended there before.
  [[nodiscard]] std::optional<Outcome> new_end(const Session& session, bool comes_in) const {
    const Tracked is = tracked[static_cast<std::size_t>(session.socket.local.address.family == Family::ipv6)];
    const Packet packet = next_packet(session, comes_in, is);
    const bool asks_nat = is != Tracked::yes;
    const std::vector<Outcome> known = ends_of(packet, asks_nat ? before : without_nat(before));
    for (const Outcome& end : ends_of(packet, asks_nat ? after : without_nat(after))) {
      const bool is_known = std::ranges::any_of(
          known, [&](const Outcome& one) { return same_place(one, end) && one.answers == end.answers; });
      if (!is_known) return end;
    }
    return std::nullopt;
  }
};

Sides sides_of(const Plan& plan, BackendKind backend, const Survey& survey, bool taken_up) {
  Sides sides{{*survey.pod, effective_rulesets(survey)}, after_apply(plan, backend, survey)};
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    const bool tracks = FamilyRules(sides.before.live, family).tracking() != FamilyRules::Tracking::no;
    sides.tracked[static_cast<std::size_t>(family == Family::ipv6)] = tracks     ? Tracked::yes
                                                                      : taken_up ? Tracked::no
                                                                                 : Tracked::never;
  }
  return sides;
}

// Options that leave sessions alone.
struct Remedy {
  std::set<std::uint16_t> inbound_ports;   // -d; or out of -b
  std::set<std::string> peers;             // -x
  std::set<std::uint16_t> outbound_ports;  // -o
  bool is_known = true;

  // For a packet that ends otherwise. What is not captured, but dropped, no such option helps.
  void add(const Session& session, bool comes_in, const Outcome& end) {
    if (end.kind != Outcome::Kind::lands) is_known = false;
    if (comes_in) {
      inbound_ports.insert(session.socket.local.port.value());
    } else if (session.inbound) {
      peers.insert(AddressRange::single(session.socket.remote.address).text());
    } else {
      outbound_ports.insert(session.socket.remote.port.value());
    }
  }

  [[nodiscard]] std::string words(const Config& config) const {
    if (!is_known) return "";
    std::vector<std::string> added;
    const auto option = [&](const char* name, const auto& values) {
      if (!values.empty()) added.push_back(fmt::format("{} {}", name, fmt::join(values, ",")));
    };
    if (config.inbound_ports.all) option("-d", inbound_ports);
    option("-x", peers);
    option("-o", outbound_ports);
    const std::string rest = added.empty() ? "" : fmt::format("add {}", fmt::join(added, " "));
    if (config.inbound_ports.all || inbound_ports.empty()) return rest;
    return fmt::format("leave {} out of -b{}{}", fmt::join(inbound_ports, ", "), rest.empty() ? "" : ", and ", rest);
  }
};

}  // namespace

CutSessions cut_sessions(const Sessions& sessions, const Request& request, const Config& config, Kernel& kernel) {
  CutSessions cut;
  if (sessions.list.empty()) return cut;
  Survey survey = kernel.survey();
  auto verdict = decide(request, survey);
  const auto* decision = std::get_if<Decision>(&verdict);
  if (decision == nullptr || decision->attempts.empty() || !decision->attempts.front().backend) return cut;
  const bool changes_rules = !decision->attempts.front().commits.empty();
  if (!changes_rules && decision->add == Routing{} && decision->remove == Routing{}) return cut;
  if (!survey.pod) survey.pod = kernel.pod();
  const Sides sides = sides_of(*request.plan, *decision->attempts.front().backend, survey, sessions.taken_up);
  Remedy remedy;
  for (const Session& session : sessions.list) {
    std::vector<std::string> harm;
    for (const bool comes_in : {true, false}) {
      const auto end = sides.new_end(session, comes_in);
      if (!end) continue;
      harm.push_back(fmt::format("what {}: {}", comes_in ? "comes in" : "goes out", sentence(*end)));
      remedy.add(session, comes_in, *end);
    }
    if (harm.empty()) continue;
    cut.list.push_back(fmt::format("{} {} {} ({}): {}", session.socket.local.text(), session.inbound ? "from" : "to",
                                   session.socket.remote.text(), session.holder, fmt::join(harm, "; ")));
  }
  cut.remedy = remedy.words(config);
  return cut;
}

}  // namespace sidetrack
