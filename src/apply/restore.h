// SPDX-License-Identifier: GPL-2.0-or-later
// apply --confirm: what was there comes back unless the new rules are confirmed.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <string>

#include "kernel/kernel.h"
#include "system/signals.h"

namespace sidetrack {

// What is ours in a namespace at one moment.
struct Snapshot {
  std::array<Ruleset, std::size(all_backends)> rules;  // by kind, as that backend holds them
  Routing routing;
};
// Throws failed of an agent's own tables of nf_tables, which count as ours and cannot be written.
[[nodiscard]] Snapshot snapshot(const Survey& survey);

// Makes the namespace hold of ours what it held then, whatever was made of it since; others' rules stay as they are
// now. Rules that are still there keep their counters, others begin at 0. Takes the kernel's locks, and waits for them
// as long as it takes: `say` is told. Throws an Error that says what stands if the kernel refuses.
void restore(const Snapshot& before, Kernel& kernel, const std::function<void(const std::string&)>& say);

// Waits until somebody confirms: by a line on the descriptor that is empty, "y" or "yes" in any case, or by SIGUSR1.
// Returns why nobody did, or nothing: the time is over, another line came, or a signal asks the process to end. At the
// end of the input it goes on: who has no terminal confirms by the signal. `signals` have been held since before the
// change.
[[nodiscard]] std::string await_confirmation(AwaitedSignals& signals, std::chrono::nanoseconds timeout, int input);

}  // namespace sidetrack
