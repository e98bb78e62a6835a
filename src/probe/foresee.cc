// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/trial.h"
#include "probe/walk.h"

namespace sidetrack::probe {
namespace {

void add(std::vector<Rule>& rules, const Walk& walk) {
  for (const Rule* rule : walk.rules) rules.push_back(*rule);
}

}  // namespace

Trial foresee(const Plan& plan, const Attempt& attempt, const Route& route) {
  Trial trial;
  trial.attempt = attempt;
  PacketAtHook packet;
  packet.protocol = attempt.protocol;
  packet.source = {attempt.from.value_or(route.source), 0};
  packet.destination = attempt.to;
  packet.out = route.interface;
  packet.owner = attempt.as;
  packet.mark = attempt.mark;
  packet.connmark = 0;  // a new connection
  packet.mark = walk(plan.ruleset, Table::mangle, "OUTPUT", packet).mark;
  const Walk output = walk(plan.ruleset, Table::nat, "OUTPUT", packet);
  add(trial.rules, output);
  trial.end = output.end;
  if (std::holds_alternative<Redirect>(output.end) || route.interface != "lo") return trial;

  // Over lo it comes in again. The table nat has decided about this connection; mangle looks at every packet.
  packet.in = "lo";
  packet.out.clear();
  const Walk input = walk(plan.ruleset, Table::mangle, "PREROUTING", packet);
  if (std::holds_alternative<Tproxy>(input.end)) trial.rules.clear();
  add(trial.rules, input);
  trial.end = input.end;
  return trial;
}

std::uint16_t captured_at(const Trial& trial) {
  if (const auto* redirect = std::get_if<Redirect>(&trial.end)) return redirect->port;
  if (const auto* tproxy = std::get_if<Tproxy>(&trial.end)) return tproxy->port;
  return 0;
}

std::uint16_t landing_port(const Trial& trial) {
  const std::uint16_t proxy = captured_at(trial);
  return proxy != 0 ? proxy : trial.attempt.to.port;
}

}  // namespace sidetrack::probe
