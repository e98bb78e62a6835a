// SPDX-License-Identifier: GPL-2.0-or-later
#include "sidetrack/apply.h"

#include "host/held_signals.h"
#include "sidetrack/diff.h"
#include "sidetrack/error.h"
#include "sidetrack/render.h"

namespace sidetrack {
namespace {

constexpr int attempts = 10;  // each lost only if somebody else committed in the milliseconds between read and commit

// The first thing in which the kernel's rules are not what was sent.
std::string first_of(const Difference& difference) {
  for (const ChainDiff& chain : difference.chains) {
    const std::string place = "table " + std::string(name(chain.table)) + ", chain " + chain.name;
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

Applied replace_rules(Backend& backend, const Ruleset& asked, bool force) {
  const Ruleset stored = backend.stored(asked);
  for (int attempt = 1;; ++attempt) {
    const Live seen = backend.read();
    if (!force && equal(seen, stored)) return Applied::unchanged;
    try {
      backend.replace(seen, asked);
    } catch (const Error& error) {
      if (error.code() == ExitCode::busy && attempt < attempts) continue;
      throw;
    }
    read_back(backend, seen, stored);
    return Applied::changed;
  }
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
  const Routing missing = without(plan.routing, there);
  routes.add(missing);
  Applied applied = Applied::unchanged;
  try {
    applied = replace_rules(backend, plan.ruleset, force);
  } catch (...) {
    undo(routes, missing);
    throw;
  }
  const Routing extra = without(there, plan.routing);
  routes.remove(extra);
  return missing == Routing{} && extra == Routing{} ? applied : Applied::changed;
}

Applied remove_ours(Backend& backend) {
  const HeldSignals held;
  return replace_rules(backend, {}, false);
}

}  // namespace sidetrack
