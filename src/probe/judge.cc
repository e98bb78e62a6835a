// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "model/error.h"
#include "probe/trial.h"

namespace sidetrack::probe {
namespace {

using Verdict_ = ProbeResult::Verdict;

ProbeResult result(Verdict_ verdict, std::string finding) { return {{}, verdict, std::move(finding), {}, {}, {}}; }
ProbeResult ok(std::string finding) { return result(Verdict_::ok, std::move(finding)); }
ProbeResult failed(std::string finding) { return result(Verdict_::failed, std::move(finding)); }
ProbeResult unknown(std::string finding) { return result(Verdict_::unknown, std::move(finding)); }

// Whether it is an address of this pod.
bool is_of_this_pod(const Address& address) {
  const Descriptor socket = open_socket(Protocol::udp, address.family);
  const SocketAddress any_port(Endpoint{address, std::nullopt});
  return bind(socket.get(), any_port.get(), SocketAddress::size()) == 0;
}

bool by_route(const Trial& trial) { return !trial.routing.local_routes.empty(); }

// "instead of being redirected to port 15001"
std::string instead(const Trial& trial) {
  if (const auto* redirect = std::get_if<Redirect>(&trial.end)) {
    return fmt::format("instead of being redirected to port {}", redirect->port);
  }
  if (const auto* tproxy = std::get_if<Tproxy>(&trial.end)) {
    return fmt::format("instead of reaching the transparent socket at port {}", tproxy->port);
  }
  return by_route(trial) ? "instead of being delivered in this pod unchanged" : "instead of being left alone";
}

bool redirected(const Trial& trial, std::optional<std::uint16_t> port) {
  const auto* redirect = std::get_if<Redirect>(&trial.end);
  return redirect != nullptr && (port == redirect->port || port == trial.or_port);
}

std::string left_alone(const Trial& trial) {
  return trial.attempt.text() + (by_route(trial) ? " is delivered in this pod" : " is left alone");
}

ProbeResult taken(const Trial& trial, const Landing& landing) {
  const Endpoint& to = trial.attempt.to;
  if (landing.at != to) {
    const std::string lands = fmt::format("{} lands on {}", trial.attempt.text(), landing.at.text());
    if (!redirected(trial, landing.listener)) return failed(lands + " " + instead(trial));
    if (trial.attempt.protocol == Protocol::udp) return ok(lands);
    if (landing.original == to) return ok(lands + " with its original destination");
    return failed(fmt::format("{}, but its original destination reads {}", lands,
                              landing.original ? landing.original->text() : "nothing"));
  }
  // It has the destination that it asked for. If that is not where this listens, TPROXY has brought it.
  const std::string found = landing.listener == to.port
                                ? left_alone(trial)
                                : fmt::format("{} reaches the transparent socket at port {} unchanged",
                                              trial.attempt.text(), landing.listener);
  const bool as_planned = !std::holds_alternative<Redirect>(trial.end) && landing.listener == landing_port(trial);
  return as_planned ? ok(found) : failed(found + " " + instead(trial));
}

ProbeResult seen(const Trial& trial, const Landing& landing) {
  const Endpoint& to = trial.attempt.to;
  const std::string lands = fmt::format("{} lands on {}", trial.attempt.text(), landing.at.text());
  if (redirected(trial, landing.at.port) && landing.at != to) {
    return ok(lands + (landing.listener != 0
                           ? ""
                           : ", where the proxy listens (only the proxy can read the original destination)"));
  }
  if (landing.at == to && !std::holds_alternative<Redirect>(trial.end)) {
    return ok(!captured_at(trial) ? left_alone(trial)
                                  : trial.attempt.text() + " reaches the proxy's transparent socket unchanged");
  }
  return failed((landing.at == to ? left_alone(trial) : lands) + " " + instead(trial));
}

ProbeResult not_sent(const Trial& trial, int error) {
  const std::string what = trial.attempt.text();
  if (error == EADDRINUSE) {
    return unknown(what + ": no port to try it from is left of net.ipv4.ip_local_port_range: not tried");
  }
  if (error == EPERM && trial.attempt.mark != 0)
    return unknown(what + ": setting a mark needs CAP_NET_ADMIN: not tried");
  return unknown(fmt::format("{} cannot be tried: {}", what, errno_words(error)));
}

ProbeResult judgement(const Trial& trial, const Landing& landing) {
  const std::string what = trial.attempt.text();
  const bool captured = captured_at(trial).has_value();
  switch (landing.kind) {
    case Landing::Kind::taken:
      return taken(trial, landing);
    case Landing::Kind::seen:
      return seen(trial, landing);
    case Landing::Kind::answered:
      return ok(what + " is answered from inside the pod");
    case Landing::Kind::refused:
      return captured ? failed(what + " is refused " + instead(trial)) : ok(left_alone(trial));
    case Landing::Kind::strayed:
      return failed(what + " leaves the pod " + instead(trial));
    case Landing::Kind::not_sent:
      return not_sent(trial, landing.error);
    case Landing::Kind::unanswered:
      break;
  }
  // A datagram is not seen in the table of sockets: that a server keeps silent says nothing about the rules.
  if (trial.attempt.protocol == Protocol::udp && !trial.attempt.complete)
    return unknown(what + " is not answered; whether it reached the process that listens there is not known");
  return failed(what + " is not answered " + instead(trial));
}

}  // namespace

ProbeResult judge(const Trial& trial, const Landing& landing) {
  ProbeResult judged = judgement(trial, landing);
  judged.name = trial.name;
  if (judged.verdict == Verdict_::failed) {
    judged.rules = trial.rules;
    judged.routing = trial.routing;
  }
  return judged;
}

ProbeResult carry_out(Trial trial, const std::vector<Listener>& listeners, SourcePorts& ports,
                      Clock::time_point deadline) {
  const auto named = [&](ProbeResult result) {
    result.name = trial.name;
    return result;
  };
  if (!trial.unknown.empty()) return named(unknown(trial.unknown));
  const Address& to = trial.attempt.to.address;
  if (to == Address::passthrough(to.family) && !is_of_this_pod(to)) {
    ProbeResult lacking = named(failed(to.text() + " is not an address of this pod"));
    lacking.routing.loopback_addresses = {to};
    return lacking;
  }
  const bool held = any_held(listeners, trial.attempt.protocol);
  trial.attempt.complete = !held;
  for (const Listener& listener : listeners) {
    if (listener.protocol != trial.attempt.protocol || listener.port != landing_port(trial)) continue;
    if (listener.state != Listener::State::refused) continue;
    // What is to be left alone may as well be refused, which a connection that is never completed does not hear.
    if (!captured_at(trial) && !held) continue;
    return named(unknown(fmt::format("cannot listen at port {}: {}", listener.port, errno_words(listener.error))));
  }
  const Clock::time_point start = Clock::now();
  Landing landing = land(trial.attempt, listeners, ports, deadline);
  // An IPv6 address that was added a moment ago can be bound to, but has no local route until the kernel's work in the
  // background adds it (addrconf_dad_work, as of 6.18).
  while (landing.kind == Landing::Kind::strayed && is_of_this_pod(to) && Clock::now() < deadline) {
    poll(nullptr, 0, 1);
    landing = land(trial.attempt, listeners, ports, deadline);
  }
  ProbeResult judged = judge(trial, landing);
  if (landing.kind != Landing::Kind::not_sent) judged.took = Clock::now() - start;
  return judged;
}

}  // namespace sidetrack::probe
