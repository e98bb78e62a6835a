// SPDX-License-Identifier: GPL-2.0-or-later
// Whether interception works, found out by real connections. All of them are made in the calling thread's network
// namespace, and none gets further than the next hop, even where no rule catches it (a hop limit of 1).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "apply/diff.h"
#include "mesh/plan.h"
#include "model/config.h"

namespace sidetrack {

struct ProbeResult {
  enum class Verdict : std::uint8_t {
    ok,
    failed,
    unknown,  // could not be tried, or not be told apart; `finding` says why
  };
  std::string name;  // "outbound tcp ipv4"
  Verdict verdict = Verdict::unknown;
  std::string finding;  // "192.0.2.1:80 lands on 127.0.0.1:15001 with its original destination"
  std::chrono::nanoseconds took{};
  // If it failed: the rules of the plan that take part in what was expected, in the order in which they are met, and
  // the routing. What is wrong is likely one of these.
  std::vector<Rule> rules;
  Routing routing;
};

// Istio's own validation: as the proxy, a connection to 127.0.0.6 (::6) at config.probe_port has to be redirected to
// the proxy's outbound or inbound port with its original port kept. Tried every second until config.probe_timeout.
//
// This listens at both ports with SO_REUSEPORT, as the reference does, as the proxy's uid. Needs that uid or
// CAP_SETUID, nothing else. Throws not_permitted if it has neither.
[[nodiscard]] ProbeResult validate(const Config& config, const Plan& plan, Family family);

// Throws usage if it is the plan itself that leaves validation's connection alone (`-o 15002`, `-c lo`): it could never
// succeed. To be called before anything is touched.
void check_validation(const Config& config, const Plan& plan, Family family);

// Everything that the plan does to traffic and that can be tried from inside the pod: inbound (as the proxy calls its
// own pod), outbound, DNS over tcp and udp, an excluded port (-o; in mode TPROXY -d, too), the app's own traffic over
// lo, TPROXY and its route; for every family of the plan. What the plan does and cannot be tried is `unknown`.
//
// Ports of the proxy that no process listens at are listened at here, with SO_REUSEPORT and as the proxy's uid, so that
// a proxy that starts meanwhile is not kept from them. A proxy that is there already is left alone: while it listens,
// no connection is completed, so it is handed none, and the kernel's table of sockets tells where each was going. All
// that it may get is one datagram with an empty DNS query.
[[nodiscard]] std::vector<ProbeResult> probe_pod(const Config& config, const Plan& plan);

// Those of the result's rules that a comparison of the whole pod finds missing.
[[nodiscard]] std::vector<Rule> missing_rules(const ProbeResult& result, const PodDiff& pod_diff);

}  // namespace sidetrack
