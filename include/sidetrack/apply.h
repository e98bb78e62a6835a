// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sidetrack/backend.h"
#include "sidetrack/choice.h"
#include "sidetrack/diff.h"
#include "sidetrack/plan.h"

namespace sidetrack {

enum class Applied : std::uint8_t { unchanged, changed };

// Makes the namespace hold the plan through this backend: routes and addresses first, since rules without them would
// lose traffic, then the rules, read back and compared; last, routes of ours that are no longer asked for go away.
// Equal rules are left alone, down to their counters, unless `force`. When it throws, the namespace holds what it held.
// Somebody else's change in between is met by reading again, a bounded number of times, then by busy.
Applied apply(const Plan& plan, Backend& backend, Routes& routes, bool force = false);

// What `apply` would return or throw, without changing anything, and what could not be checked, a sentence each.
struct Checked {
  Applied applied = Applied::unchanged;
  std::vector<std::string> unchecked;
};
Checked check(const Plan& plan, Backend& backend, Routes& routes, bool force = false);

// Removes all rules and chains that are ours from this backend.
Applied remove_ours(Backend& backend);

// Opens a backend, to read or to write. Throws what the backend throws.
enum class Access : std::uint8_t { read, write };
using OpenBackend = std::function<std::unique_ptr<Backend>(BackendKind kind, Access access)>;

struct Outcome {
  Applied applied = Applied::unchanged;
  BackendKind backend = BackendKind::iptables_nft;
  Ruleset stored;                     // the rules as that backend holds them
  std::vector<BackendKind> left;      // other backends, whose rules of ours are gone now
  std::vector<std::string> warnings;  // of the backends
};

// Makes the namespace hold the plan through the first backend of the choice whose kernel side takes it, and through no
// other: what is ours elsewhere goes away once the new rules are in and read back. Rules that are already as asked, in
// whichever backend of the choice, are left there. Throws kernel_lacks with what each backend lacks if none takes it.
Outcome converge(const Plan& plan, const Choice& choice, const OpenBackend& open, Routes& routes, bool force = false);

// What `converge` would return or throw, without changing anything: `left` are those whose rules of ours would go. What
// could not be checked is among the warnings.
Outcome check(const Plan& plan, const Choice& choice, const OpenBackend& open, Routes& routes, bool force = false);

// Removes all that is ours from every backend, then routes and addresses. Backends that the kernel lacks hold nothing.
Outcome clean(const OpenBackend& open, Routes& routes);

// What converge would change.
[[nodiscard]] Comparison compare(const Plan& plan, const Choice& choice, const OpenBackend& open, Routes& routes);

// Whether any of it is ours.
[[nodiscard]] bool holds_ours(const Live& live);

}  // namespace sidetrack
