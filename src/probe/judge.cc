// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <cerrno>

#include "probe/route.h"
#include "probe/trial.h"
#include "sidetrack/error.h"

namespace sidetrack::probe {
namespace {

using Verdict_ = ProbeResult::Verdict;

struct Judgement {
  Verdict_ verdict;
  std::string finding;
};

Judgement ok(std::string finding) { return {Verdict_::ok, std::move(finding)}; }
Judgement failed(std::string finding) { return {Verdict_::failed, std::move(finding)}; }
Judgement untold(std::string finding) { return {Verdict_::untold, std::move(finding)}; }

// "instead of being redirected to port 15001"
std::string instead(const Trial& trial) {
  if (const auto* redirect = std::get_if<Redirect>(&trial.end)) {
    return fmt::format("instead of being redirected to port {}", redirect->port);
  }
  if (const auto* tproxy = std::get_if<Tproxy>(&trial.end)) {
    return fmt::format("instead of reaching the transparent socket at port {}", tproxy->port);
  }
  return "instead of being left alone";
}

bool redirected(const Trial& trial, std::uint16_t port) {
  const auto* redirect = std::get_if<Redirect>(&trial.end);
  return redirect != nullptr && (port == redirect->port || port == trial.or_port);
}

std::string left_alone(const Trial& trial) {
  const bool by_route = !trial.routing.local_routes.empty();
  return trial.attempt.to.text() + (by_route ? " stays in this pod" : " is left alone");
}

Judgement taken(const Trial& trial, const Landing& landing) {
  const Endpoint& to = trial.attempt.to;
  const std::string lands = fmt::format("{} lands on {}", to.text(), landing.at.text());
  if (redirected(trial, landing.listener)) {
    if (trial.attempt.protocol == Protocol::udp) return ok(lands);
    if (landing.original == to) return ok(lands + " with its original destination");
    return failed(fmt::format("{}, but its original destination reads {}", lands,
                              landing.original ? landing.original->text() : "nothing"));
  }
  if (landing.listener == landing_port(trial) && landing.at == to) {
    const std::uint16_t port = captured_at(trial);
    return ok(port == 0 ? left_alone(trial)
                        : fmt::format("{} reaches the transparent socket at port {} unchanged", to.text(), port));
  }
  return failed((landing.at == to ? left_alone(trial) : lands) + " " + instead(trial));
}

Judgement seen(const Trial& trial, const Landing& landing) {
  const Endpoint& to = trial.attempt.to;
  const std::string lands = fmt::format("{} lands on {}", to.text(), landing.at.text());
  if (redirected(trial, landing.at.port) && landing.at != to)
    return ok(lands + ", where the proxy listens (its original destination is the proxy's to read)");
  if (landing.at == to && !std::holds_alternative<Redirect>(trial.end)) {
    return ok(captured_at(trial) == 0 ? left_alone(trial)
                                      : to.text() + " reaches the proxy's transparent socket unchanged");
  }
  return failed((landing.at == to ? left_alone(trial) : lands) + " " + instead(trial));
}

Judgement not_sent(const Trial& trial, int error) {
  const std::string to = trial.attempt.to.text();
  if (error == EPERM && trial.attempt.mark != 0)
    return untold(fmt::format("{} with mark {} needs CAP_NET_ADMIN: not tried", to, trial.attempt.mark));
  return untold(fmt::format("{} cannot be tried: {}", to, errno_words(error)));
}

Judgement judgement(const Trial& trial, const Landing& landing) {
  const std::string to = trial.attempt.to.text();
  const bool captured = captured_at(trial) != 0;
  switch (landing.kind) {
    case Landing::Kind::taken:
      return taken(trial, landing);
    case Landing::Kind::seen:
      return seen(trial, landing);
    case Landing::Kind::answered:
      return ok(to + " is answered from inside the pod");
    case Landing::Kind::refused:
      return captured ? failed(to + " is refused " + instead(trial)) : ok(left_alone(trial));
    case Landing::Kind::strayed:
      return failed(to + " leaves the pod " + instead(trial));
    case Landing::Kind::not_sent:
      return not_sent(trial, landing.error);
    case Landing::Kind::unanswered:
      break;
  }
  // A datagram is not seen in the table of sockets: that a server keeps silent says nothing about the rules.
  if (trial.attempt.protocol == Protocol::udp && !trial.attempt.complete)
    return untold(to + " is not answered; whether it reached whoever listens there cannot be told");
  return failed(to + " is not answered " + instead(trial));
}

}  // namespace

ProbeResult judge(const Trial& trial, const Landing& landing) {
  Judgement found = judgement(trial, landing);
  ProbeResult result{trial.name, found.verdict, std::move(found.finding), {}, {}, {}};
  if (result.verdict == Verdict_::failed) {
    result.rules = trial.rules;
    result.routing = trial.routing;
  }
  return result;
}

ProbeResult carry_out(Trial trial, const std::vector<Listener>& listeners, Clock::time_point deadline) {
  const auto result = [&](Verdict_ verdict, std::string finding) {
    return ProbeResult{trial.name, verdict, std::move(finding), {}, {}, {}};
  };
  if (!trial.untold.empty()) return result(Verdict_::untold, trial.untold);
  const Address& to = trial.attempt.to.address;
  if (to == passthrough(to.family) && !is_own(to)) {
    ProbeResult lacking = result(Verdict_::failed, to.text() + " is not an address of this pod");
    lacking.routing.loopback_addresses = {to};
    return lacking;
  }
  for (const Listener& listener : listeners) {
    if (listener.protocol != trial.attempt.protocol || listener.port != landing_port(trial)) continue;
    if (listener.state == Listener::State::refused) {
      return result(Verdict_::untold,
                    fmt::format("cannot listen at port {}: {}", listener.port, errno_words(listener.error)));
    }
    trial.attempt.complete = listener.state == Listener::State::ours;
  }
  const Clock::time_point start = Clock::now();
  ProbeResult judged = judge(trial, land(trial.attempt, listeners, deadline));
  judged.took = Clock::now() - start;
  return judged;
}

}  // namespace sidetrack::probe
