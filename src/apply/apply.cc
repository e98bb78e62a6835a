// SPDX-License-Identifier: GPL-2.0-or-later
#include "sidetrack/apply.h"

#include <optional>

#include "host/held_signals.h"
#include "model/printable.h"
#include "sidetrack/diff.h"
#include "sidetrack/error.h"
#include "sidetrack/render.h"

namespace sidetrack {
namespace {

constexpr int attempts = 10;  // each lost only if somebody else committed in the milliseconds between read and commit

// The first thing in which the kernel's rules are not what was sent.
std::string first_of(const Difference& difference) {
  for (const ChainDiff& chain : difference.chains) {
    std::string place = "table " + std::string(name(chain.table)) + ", chain " + printable(chain.name);
    for (const DiffLine& line : chain.lines) {
      if (line.kind == DiffLine::Kind::missing) return place + ": missing: " + iptables_words(line.rule);
      if (line.kind == DiffLine::Kind::extra) return place + ": not asked for: " + iptables_words(line.rule);
    }
    return place;
  }
  return "";
}

void read_back(Backend& backend, const Live& seen, const Ruleset& stored) {
  const Live after = backend.read();
  if (equal(after, stored)) return;
  const std::string backend_name(name(backend.kind()));
  // Each commit to nf_tables counts the generation up by one; a lock keeps others from the legacy tables.
  if (after.generation != seen.generation && after.generation != seen.generation + 1) {
    throw Error(ExitCode::busy,
                backend_name + ": the rules were committed, but somebody else changed them right after: " +
                    first_of(diff(after, stored)),
                "see that only one program writes the sidecar's rules, then run it again");
  }
  throw Error(ExitCode::failed,
              backend_name + ": the kernel holds other rules than were committed: " + first_of(diff(after, stored)),
              "'sidetrack diff' shows what differs");
}

// Calls `act` with what the kernel holds, unless that is as asked already; again if somebody changes it in between.
// Returns what it was called with.
template <typename Act>
std::optional<Live> unless_equal(Backend& backend, const Ruleset& stored, bool force, Act act) {
  for (int attempt = 1;; ++attempt) {
    Live seen = backend.read();
    if (!force && equal(seen, stored)) return std::nullopt;
    try {
      act(seen);
      return seen;
    } catch (const Error& error) {
      if (error.code() != ExitCode::busy || attempt == attempts) throw;
    }
  }
}

// What was replaced, unless that is as asked already.
std::optional<Live> replace_rules(Backend& backend, const Ruleset& asked, const Ruleset& stored, bool force) {
  const EqualRules equal = force ? EqualRules::rewrite : EqualRules::keep;
  return unless_equal(backend, stored, force, [&](const Live& seen) { backend.replace(seen, asked, equal); });
}

// The first error is the one to report: a second one, on the way back, must not hide it.
void undo(Routes& routes, const Routing& added) {
  try {
    routes.remove(added);
  } catch (const Error&) {
  }
}

}  // namespace

Applied apply(const Plan& plan, Backend& backend, Routes& routes, bool force) {
  const HeldSignals held;
  const Routing there = routes.read();
  const Routing added = routes.add(without(plan.routing, there));
  const Ruleset stored = backend.stored(plan.ruleset);
  std::optional<Live> replaced;
  try {
    replaced = replace_rules(backend, plan.ruleset, stored, force);
  } catch (...) {
    undo(routes, added);
    throw;
  }
  // From here on the rules stand, and with them the routes that they need.
  if (replaced) read_back(backend, *replaced, stored);
  const Routing extra = without(there, plan.routing);
  routes.remove(extra);
  return replaced || added != Routing{} || extra != Routing{} ? Applied::changed : Applied::unchanged;
}

Checked check(const Plan& plan, Backend& backend, Routes& routes, bool force) {
  const Routing there = routes.read();
  const Routing missing = without(plan.routing, there);
  Checked checked;
  const auto asked = unless_equal(backend, backend.stored(plan.ruleset), force,
                                  [&](const Live& seen) { checked.unchecked = backend.check(seen, plan.ruleset); });
  for (const std::string& command : ip_commands(missing)) {
    checked.unchecked.push_back("routing: whether the kernel takes '" + command +
                                "': it can only be asked by doing it");
  }
  const bool same_routing = missing == Routing{} && without(there, plan.routing) == Routing{};
  checked.applied = asked || !same_routing ? Applied::changed : Applied::unchanged;
  return checked;
}

Applied remove_ours(Backend& backend) {
  const HeldSignals held;
  const auto replaced = replace_rules(backend, {}, {}, false);
  if (!replaced) return Applied::unchanged;
  read_back(backend, *replaced, {});
  return Applied::changed;
}

}  // namespace sidetrack
