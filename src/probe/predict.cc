// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <algorithm>

#include "probe/trial.h"
#include "system/cgroup.h"
#include "walk/explain.h"

namespace sidetrack::probe {
namespace {

Packet packet_of(const Attempt& attempt) {
  Packet packet;
  packet.protocol = attempt.protocol;
  packet.source = attempt.from;
  packet.destination = attempt.to.address;
  packet.destination_port = attempt.to.port;
  packet.owner = attempt.as;
  packet.cgroup = own_cgroup();
  packet.mark = attempt.mark;
  return packet;
}

const Rule* rule_of(const Plan& plan, Family family, const Step& step) {
  const auto* table = std::ranges::find_if(all_tables, [&](Table each) { return name(each) == step.table; });
  const std::vector<Chain> all = chains(plan.ruleset, *table, family);
  return std::ranges::find(all, step.chain, &Chain::name)->rules.at(step.number - 1);
}

// The jumps that lead to the rule of a step, and that rule.
std::vector<const Rule*> path_to(const Plan& plan, const Trace& trace, std::size_t step) {
  std::vector<const Rule*> path;
  unsigned depth = trace.steps[step].depth + 1;
  for (std::size_t i = step + 1; i-- > 0 && depth > 0;) {
    if (trace.steps[i].depth >= depth) continue;
    depth = trace.steps[i].depth;
    path.insert(path.begin(), rule_of(plan, trace.packet.destination->family, trace.steps[i]));
  }
  return path;
}

}  // namespace

Planned::Planned(const Plan& of, PodView in)
    : plan(of), pod(std::move(in)), live(as_live(of.ruleset, BackendKind::iptables_legacy)) {}

Trial predict(const Planned& planned, const Attempt& attempt) {
  Trial trial;
  trial.attempt = attempt;
  const Trace trace = explain(packet_of(attempt), planned.pod, {&planned.live, 1});
  const Outcome& outcome = trace.outcome;
  if (outcome.transparent) {
    trial.end = Tproxy{.port = outcome.transparent_port};
  } else if (outcome.kind == Outcome::Kind::lands && outcome.original) {
    trial.end = Redirect{outcome.at.port.value()};
  } else if (outcome.kind == Outcome::Kind::unknown) {
    trial.unknown = fmt::format("{}: {}: not tried", attempt.text(), sentence(outcome));
    return trial;
  }
  std::vector<const Rule*> rules;
  for (const std::size_t step : trace.decisive) {
    for (const Rule* rule : path_to(planned.plan, trace, step)) {
      if (std::ranges::find(rules, rule) == rules.end()) rules.push_back(rule);
    }
  }
  for (const Rule* rule : rules) trial.rules.push_back(*rule);
  return trial;
}

std::optional<std::uint16_t> captured_at(const Trial& trial) { return listening_port(trial.end); }

std::uint16_t landing_port(const Trial& trial) { return captured_at(trial).value_or(trial.attempt.to.port.value()); }

}  // namespace sidetrack::probe
