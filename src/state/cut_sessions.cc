// SPDX-License-Identifier: GPL-2.0-or-later
#include "state/cut_sessions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "evaluate/explain.h"
#include "evaluate/hook_calls.h"
#include "evaluate/null_observer.h"
#include "model/error.h"

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

// The first end that the packet has not had before.
std::optional<Outcome> new_end(const Packet& packet, const space::Side& before, const space::Side& after) {
  const std::vector<Outcome> known = ends_of(packet, before);
  for (const Outcome& end : ends_of(packet, after)) {
    const bool is_known = std::ranges::any_of(
        known, [&](const Outcome& one) { return same_place(one, end) && one.answers == end.answers; });
    if (!is_known) return end;
  }
  return std::nullopt;
}

// Before and after a change of the rules, of new connections and of those that are tracked.
struct Sides {
  space::Side before;
  space::Side after;
  Tracked tracked[2] = {Tracked::no, Tracked::no};  // of IPv4 and IPv6

  [[nodiscard]] std::string harm(const Session& session) const {
    const Family family = session.socket.local.address.family;
    const Tracked is = tracked[static_cast<std::size_t>(family == Family::ipv6)];
    std::string words;
    for (const bool comes_in : {true, false}) {
      const Packet packet = next_packet(session, comes_in, is);
      const auto end = is == Tracked::yes ? new_end(packet, without_nat(before), without_nat(after))
                                          : new_end(packet, before, after);
      if (!end) continue;
      words +=
          fmt::format("{}what {}: {}", words.empty() ? "" : "; ", comes_in ? "comes in" : "goes out", sentence(*end));
    }
    return words;
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

// ---- What leaves a session alone

// The same ports without one of them.
std::vector<PortRange> without(const std::vector<PortRange>& all, std::uint16_t port) {
  std::vector<PortRange> left;
  for (const PortRange& ports : all) {
    if (!ports.contains(port)) left.push_back(ports);
    if (ports.contains(port) && ports.first < port)
      left.emplace_back(ports.first, static_cast<std::uint16_t>(port - 1));
    if (ports.contains(port) && port < ports.last) left.emplace_back(static_cast<std::uint16_t>(port + 1), ports.last);
  }
  return left;
}

// "80,20-21", as -b takes it.
std::string port_texts(const std::vector<PortRange>& ports) {
  std::vector<std::string> texts;
  std::ranges::transform(ports, std::back_inserter(texts), [](const PortRange& range) { return text(range); });
  return fmt::format("{}", fmt::join(texts, ","));
}

struct Remedy {
  std::set<std::uint16_t> ports;         // -d
  std::set<AddressRange> ranges;         // -x
  std::set<std::uint16_t> out_ports;     // -o
  std::set<std::uint16_t> not_captured;  // out of -b
  std::set<std::string> interfaces;      // -c

  void add(const Remedy& other) {
    ports.insert(other.ports.begin(), other.ports.end());
    ranges.insert(other.ranges.begin(), other.ranges.end());
    out_ports.insert(other.out_ports.begin(), other.out_ports.end());
    not_captured.insert(other.not_captured.begin(), other.not_captured.end());
    interfaces.insert(other.interfaces.begin(), other.interfaces.end());
  }

  [[nodiscard]] Config applied_to(Config config) const {
    const auto append = [](auto& list, const auto& more) { list.insert(list.end(), more.begin(), more.end()); };
    append(config.inbound_exclude_ports, ports);
    append(config.outbound_exclude_ranges, ranges);
    append(config.outbound_exclude_ports, out_ports);
    append(config.exclude_interfaces, interfaces);
    for (const std::uint16_t port : not_captured) config.inbound_ports.list = without(config.inbound_ports.list, port);
    return config;
  }

  // `config` is what it is to be applied to.
  [[nodiscard]] std::string words(const Config& config) const {
    std::vector<std::string> all;
    const auto option = [&](const char* name, const auto& values) {
      if (!values.empty()) all.push_back(fmt::format("{} {}", name, fmt::join(values, ",")));
    };
    std::vector<std::string> texts;
    for (const AddressRange& range : ranges) texts.push_back(range.text());
    option("-d", ports);
    option("-x", texts);
    option("-o", out_ports);
    option("-c", interfaces);
    const std::string added = all.empty() ? "" : fmt::format("add {}", fmt::join(all, " "));
    if (not_captured.empty()) return added;
    const bool in_range = std::ranges::any_of(config.inbound_ports.list, [&](const PortRange& range) {
      return range.first != range.last &&
             std::ranges::any_of(not_captured, [&](auto port) { return range.contains(port); });
    });
    const std::string captured = in_range ? "give -b " + port_texts(applied_to(config).inbound_ports.list)
                                          : fmt::format("leave {} out of -b", fmt::join(not_captured, ", "));
    return captured + (added.empty() ? "" : ", and " + added);
  }
};

// What might do, what takes least first.
std::vector<Remedy> candidates(const Session& session, const std::string& interface) {
  const std::set<std::uint16_t> own{session.socket.local.port.value()};
  const std::set<std::uint16_t> other{session.socket.remote.port.value()};
  const std::set<AddressRange> peer{AddressRange::single(session.socket.remote.address)};
  std::vector<Remedy> all;
  if (session.inbound) {
    all.push_back({.ports = own, .ranges = {}, .out_ports = {}, .not_captured = {}, .interfaces = {}});
    all.push_back({.ports = {}, .ranges = peer, .out_ports = {}, .not_captured = {}, .interfaces = {}});
    all.push_back({.ports = {}, .ranges = {}, .out_ports = {}, .not_captured = own, .interfaces = {}});
    all.push_back({.ports = own, .ranges = peer, .out_ports = {}, .not_captured = {}, .interfaces = {}});
    all.push_back({.ports = {}, .ranges = peer, .out_ports = {}, .not_captured = own, .interfaces = {}});
  } else {
    all.push_back({.ports = own, .ranges = {}, .out_ports = {}, .not_captured = {}, .interfaces = {}});
    all.push_back({.ports = {}, .ranges = {}, .out_ports = other, .not_captured = {}, .interfaces = {}});
    all.push_back({.ports = {}, .ranges = peer, .out_ports = {}, .not_captured = {}, .interfaces = {}});
    all.push_back({.ports = own, .ranges = {}, .out_ports = other, .not_captured = {}, .interfaces = {}});
    all.push_back({.ports = own, .ranges = peer, .out_ports = {}, .not_captured = {}, .interfaces = {}});
  }
  if (!interface.empty())
    all.push_back({.ports = {}, .ranges = {}, .out_ports = {}, .not_captured = {}, .interfaces = {interface}});
  return all;
}

// By which it leaves as it is.
std::string interface_of(const Session& session, const space::Side& before) {
  for (const Outcome& end : ends_of(next_packet(session, false, Tracked::no), before)) {
    if (end.kind == Outcome::Kind::leaves) return end.interface;
  }
  return "";
}

// How the change is looked at with other options.
class Search {
 public:
  Search(const Config& config, const Replan& replan, BackendKind backend, const Survey& survey, bool taken_up)
      : config_(config), replan_(replan), backend_(backend), survey_(survey), taken_up_(taken_up) {}

  [[nodiscard]] bool keeps(const Remedy& remedy, const std::vector<const Session*>& sessions) const {
    const Sides sides = sides_of(replan_(remedy.applied_to(config_)), backend_, survey_, taken_up_);
    return std::ranges::all_of(sessions, [&](const Session* session) { return sides.harm(*session).empty(); });
  }

  // The words of what keeps them all; empty: nothing does.
  [[nodiscard]] std::string remedy(const std::vector<const Session*>& sessions) const {
    const space::Side before{*survey_.pod, effective_rulesets(survey_)};
    Remedy together;
    for (const Session* session : sessions) {
      const auto all = candidates(*session, interface_of(*session, before));
      const auto found = std::ranges::find_if(all, [&](const Remedy& one) { return keeps(one, {session}); });
      if (found == all.end()) return "";
      together.add(*found);
    }
    return keeps(together, sessions) ? together.words(config_) : "";
  }

 private:
  const Config& config_;
  const Replan& replan_;
  BackendKind backend_;
  const Survey& survey_;
  bool taken_up_;
};

}  // namespace

CutSessions cut_sessions(const Sessions& sessions, const Request& request, const Config& config, const Replan& replan,
                         Kernel& kernel) {
  CutSessions cut;
  if (sessions.list.empty()) return cut;
  Survey survey = kernel.survey();
  auto verdict = decide(request, survey);
  const auto* decision = std::get_if<Decision>(&verdict);
  if (decision == nullptr || decision->attempts.empty() || !decision->attempts.front().backend) return cut;
  const bool changes_rules = !decision->attempts.front().commits.empty();
  if (!changes_rules && decision->add == Routing{} && decision->remove == Routing{}) return cut;
  if (!survey.pod) survey.pod = kernel.pod();
  const BackendKind backend = *decision->attempts.front().backend;
  const Sides sides = sides_of(*request.plan, backend, survey, sessions.taken_up);
  std::vector<const Session*> harmed;
  for (const Session& session : sessions.list) {
    const std::string harm = sides.harm(session);
    if (harm.empty()) continue;
    harmed.push_back(&session);
    cut.list.push_back({fmt::format("{} {} {} ({}): {}", session.socket.local.text(), session.inbound ? "from" : "to",
                                    session.socket.remote.text(), session.holder, harm)});
  }
  if (!harmed.empty()) cut.remedy = Search(config, replan, backend, survey, sessions.taken_up).remedy(harmed);
  return cut;
}

}  // namespace sidetrack
