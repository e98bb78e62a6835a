// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <vector>

#include "mesh/plan.h"
#include "pod/pod_view.h"
#include "probe/attempt.h"
#include "probe/probe.h"
#include "rule/live.h"

namespace sidetrack::probe {

// An attempt, and what becomes of it by the plan.
struct Trial {
  std::string name{};
  Attempt attempt{};
  Target end = Verdict::accept;  // Redirect, Tproxy, or accept: left alone
  std::uint16_t or_port = 0;     // will do as well for a Redirect; 0: none
  std::vector<Rule> rules{};     // by which it ends so
  Routing routing{};             // without which it cannot
  std::string unknown{};         // why it cannot be tried; empty: it can
};

// A plan, which outlives it, as if it were installed in a pod.
struct Planned {
  Planned(const Plan& of, PodView in);
  const Plan& plan;
  PodView pod;
  Live live;
};

[[nodiscard]] Trial predict(const Planned& planned, const Attempt& attempt);

// The port of the proxy where it ends, if it does.
[[nodiscard]] std::optional<std::uint16_t> captured_at(const Trial& trial);

// The port where it lands: one of the proxy's, or the one that it was meant for.
[[nodiscard]] std::uint16_t landing_port(const Trial& trial);

// Compares what became of it with the plan.
[[nodiscard]] ProbeResult judge(const Trial& trial, const Landing& landing);

// Makes the attempt and judges it. Connections are completed if no other process listens where one might land. What
// goes to 127.0.0.6 or ::6 is not sent if that is no address of this pod.
[[nodiscard]] ProbeResult carry_out(Trial trial, const std::vector<Listener>& listeners, SourcePorts& ports,
                                    Clock::time_point deadline);

// ---- What to try, and as whom.

// The proxy's ids: those of which this thread can make sockets come first.
[[nodiscard]] std::vector<Owner> proxy_identities(const Config& config);
// Ids that are not the proxy's, and every owner group that was asked for.
[[nodiscard]] std::vector<Owner> app_identities(const Config& config);

// As the proxy, from loopback to the address that it passes inbound traffic on from: validation's connection.
[[nodiscard]] Trial inbound(const Config& config, const Plan& plan, Family family);
// Everything else that the plan does for this family.
[[nodiscard]] std::vector<Trial> trials(const Config& config, const Planned& planned, Family family);

}  // namespace sidetrack::probe
