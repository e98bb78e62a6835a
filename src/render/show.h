// SPDX-License-Identifier: GPL-2.0-or-later
// Writes what is installed, for a person to read. Pure functions over what was read back.
#pragma once

#include <span>
#include <string>

#include "apply/obstacles.h"
#include "pod/pod_view.h"
#include "pod/routing.h"
#include "rule/live.h"

namespace sidetrack {

// What is captured and what is left out of it, a sentence each, over all backends and both families: by new connections
// as programs make them.
struct Summary {
  std::string inbound;   // "TCP goes to port 15006 (Envoy inbound)"
  std::string outbound;  // "TCP to 10.96.0.0/12 goes to port 15001 (Envoy outbound)"
  std::string left_out;  // "inbound to port 15008, 15021; outbound to 10.0.0.1; sent by uid 1337"
};
// In the pod, with addresses of documentation and a way out for a family that has none.
[[nodiscard]] Summary summary(PodView pod, std::span<const Live> live);

struct ShowOptions {
  bool color = false;
  bool all = false;                          // every rule; otherwise long runs of rules of one kind are one line
  std::span<const Live> before = {};         // what was shown last: counters that have moved since are marked
  std::span<const Obstacle> obstacles = {};  // others' rules that decide otherwise than ours
  const PodView* pod = nullptr;              // of the summary; nullptr: one of documentation addresses
};

// Summarises the rules in the pod of the options.
[[nodiscard]] Summary summary(const ShowOptions& options, std::span<const Live> live);

// A tree from each hook: chains, rules with numbers, counters, whose they are and what they do; policy rules, routes,
// addresses; the summary.
[[nodiscard]] std::string show(std::span<const Live> live, const Routing& routing, const ShowOptions& options);
[[nodiscard]] std::string show_json(std::span<const Live> live, const Routing& routing, const ShowOptions& options);
// The same without what follows from the rules: what `diff --effect` reads.
[[nodiscard]] std::string rules_json(std::span<const Live> live, const Routing& routing);

}  // namespace sidetrack
