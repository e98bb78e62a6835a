// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <optional>

#include "analyse/ownership.h"
#include "sidetrack/apply.h"
#include "sidetrack/diff.h"
#include "sidetrack/error.h"

namespace sidetrack {
namespace {

constexpr BackendKind all_backends[] = {BackendKind::iptables_legacy, BackendKind::iptables_nft, BackendKind::nftables};

// Nothing, if the kernel has no such thing or does not let us look: then we cannot have written there either.
std::optional<Live> look(BackendKind kind, const OpenBackend& open) {
  try {
    return open(kind, Access::read)->read();
  } catch (const Error& error) {
    if (error.code() == ExitCode::kernel_lacks || error.code() == ExitCode::not_permitted) return std::nullopt;
    throw;
  }
}

// The backends besides `kind` that hold something of ours.
std::vector<Live> elsewhere(std::optional<BackendKind> kind, const OpenBackend& open) {
  std::vector<Live> found;
  for (BackendKind other : all_backends) {
    if (other == kind) continue;
    auto live = look(other, open);
    if (live && holds_ours(*live)) found.push_back(std::move(*live));
  }
  return found;
}

void add_warnings(Outcome& outcome, const Backend& backend) {
  std::ranges::copy(backend.warnings(), std::back_inserter(outcome.warnings));
}

void remove_rules(const std::vector<Live>& found, const OpenBackend& open, Outcome& outcome) {
  for (const Live& live : found) {
    const auto backend = open(live.backend, Access::write);
    remove_ours(*backend);
    add_warnings(outcome, *backend);
    outcome.left.push_back(live.backend);
    outcome.applied = Applied::changed;
  }
}

// The one other backend that already holds exactly what is asked.
std::optional<BackendKind> already_in(const std::vector<Live>& found, const Choice& choice, const Plan& plan,
                                      const OpenBackend& open) {
  if (found.size() != 1) return std::nullopt;
  const BackendKind kind = found.front().backend;
  if (std::ranges::find(choice.order, kind) == choice.order.end()) return std::nullopt;
  if (!equal(found.front(), open(kind, Access::read)->stored(plan.ruleset))) return std::nullopt;
  return kind;
}

// Those to be tried, in this order.
std::vector<BackendKind> candidates(const std::vector<Live>& found, const Choice& choice, const Plan& plan,
                                    const OpenBackend& open, bool force) {
  const auto kind = force ? std::nullopt : already_in(found, choice, plan, open);
  return kind ? std::vector{*kind} : choice.order;
}

// What `attempt` gives for the first backend whose kernel side takes the rules.
template <typename Attempt>
Outcome first_that_takes(const std::vector<BackendKind>& order, Attempt attempt) {
  std::string lacking;
  for (BackendKind kind : order) {
    try {
      return attempt(kind);
    } catch (const Error& error) {
      if (error.code() != ExitCode::kernel_lacks || order.size() == 1) throw;
      lacking +=
          "\n  " + std::string(name(kind)) + ": " + error.what() + (error.hint().empty() ? "" : "; " + error.hint());
    }
  }
  throw Error(ExitCode::kernel_lacks, "no backend can program these rules here:" + lacking);
}

}  // namespace

bool holds_ours(const Live& live) {
  // An empty table of iptables may be anybody's; one of nftables has our name.
  const bool our_table = live.backend == BackendKind::nftables && !live.own_tables.empty();
  return our_table || std::ranges::any_of(live.chains, [](const LiveChain& chain) { return concerns_us(chain); });
}

Outcome converge(const Plan& plan, const Choice& choice, const OpenBackend& open, Routes& routes, bool force) {
  std::vector<Live> found = elsewhere(choice.order.front(), open);
  return first_that_takes(candidates(found, choice, plan, open, force), [&](BackendKind kind) {
    const auto backend = open(kind, Access::write);
    Outcome outcome{apply(plan, *backend, routes, force), kind, backend->stored(plan.ruleset), {}, {}};
    add_warnings(outcome, *backend);
    if (kind != choice.order.front()) found = elsewhere(kind, open);
    remove_rules(found, open, outcome);
    return outcome;
  });
}

Outcome check(const Plan& plan, const Choice& choice, const OpenBackend& open, Routes& routes, bool force) {
  std::vector<Live> found = elsewhere(choice.order.front(), open);
  return first_that_takes(candidates(found, choice, plan, open, force), [&](BackendKind kind) {
    const auto backend = open(kind, Access::read);
    const Checked checked = check(plan, *backend, routes, force);
    Outcome outcome{checked.applied, kind, backend->stored(plan.ruleset), {}, {}};
    for (const std::string& sentence : checked.unchecked) outcome.warnings.push_back("not checked: " + sentence);
    add_warnings(outcome, *backend);
    if (kind != choice.order.front()) found = elsewhere(kind, open);
    for (const Live& live : found) {
      outcome.left.push_back(live.backend);
      outcome.applied = Applied::changed;
    }
    return outcome;
  });
}

Comparison compare(const Plan& plan, const Choice& choice, const OpenBackend& open, Routes& routes) {
  std::vector<Live> found = elsewhere(std::nullopt, open);
  // The one that holds our rules already, if it is among those that would do; else the one that would be tried first.
  const auto would_do = [&](const Live& live) {
    return std::ranges::find(choice.order, live.backend) != choice.order.end();
  };
  const BackendKind kind = std::ranges::count_if(found, would_do) == 1 ? std::ranges::find_if(found, would_do)->backend
                                                                       : choice.order.front();
  Comparison comparison;
  const auto backend = open(kind, Access::read);
  comparison.backends.push_back(diff(backend->read(), backend->stored(plan.ruleset)));
  for (const Live& live : found) {
    if (live.backend != kind) comparison.backends.push_back(diff(live, {}));
  }
  const Routing there = routes.read();
  comparison.missing = without(plan.routing, there);
  comparison.extra = without(there, plan.routing);
  return comparison;
}

Outcome clean(const OpenBackend& open, Routes& routes) {
  Outcome outcome;
  remove_rules(elsewhere(std::nullopt, open), open, outcome);
  const Routing there = routes.read();
  if (there != Routing{}) {
    routes.remove(there);
    outcome.applied = Applied::changed;
  }
  return outcome;
}

}  // namespace sidetrack
