// SPDX-License-Identifier: GPL-2.0-or-later
// Survey, decide, execute: the only writer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apply/decide.h"
#include "kernel/kernel.h"

namespace sidetrack {

enum class Applied : std::uint8_t { unchanged, changed };

struct ApplyResult {
  Applied applied = Applied::unchanged;
  std::optional<BackendKind> backend;          // that holds the rules; nothing: clean, or no rules are requested
  Ruleset canonical;                           // the rules as that backend holds them
  std::vector<BackendKind> left;               // other backends, whose rules of ours are gone now
  std::vector<std::string> routing_removed{};  // "ip rule del fwmark 5 lookup 133", a line each
  std::vector<std::string> skipped;            // why backends that come first were not used, a line each
  std::vector<std::string> warnings;
  std::vector<Obstacle> obstacles;
  std::vector<LostReplies> lost_replies;  // PodDiff::lost_replies
  std::string because;                    // Decision::because
};

// Makes the namespace hold what is asked: through the first backend whose kernel side takes the rules, and through no
// other. Rules that are already as requested are left alone, down to their counters, unless --force-apply.
//
// All or nothing: when it throws, the namespace holds what it held, or the message says what it holds. Signals that ask
// the process to end wait from the first change to the last. Another program's change in between is met by a new
// survey, a bounded number of times, then by busy. Throws kernel_lacks with what each backend lacks if none takes the
// rules.
ApplyResult converge(const Request& request, Kernel& kernel);

// What `converge` would return or throw, without changing anything: `left` are those whose rules of ours would go. What
// could not be checked is among the warnings.
ApplyResult check(const Request& request, Kernel& kernel);

}  // namespace sidetrack
