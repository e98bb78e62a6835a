// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyse/match.h"
#include "sidetrack/explain.h"

namespace sidetrack {

// "rule 9 of nat ISTIO_OUTPUT"
inline std::string rule_of(const Step& step) {
  return fmt::format("rule {} of {} {}", step.number, name(step.table), step.chain);
}

// A packet on its way through the kernel, and what is noted of it.
struct InFlight {
  Family family = Family::ipv4;
  PacketAtHook now;
  bool tracked = false;  // conntrack has seen it
  std::optional<std::uint16_t> zone;
  std::optional<Endpoint> translation;       // of its connection's destination
  std::optional<Endpoint> original;          // the destination before it
  std::optional<std::uint16_t> transparent;  // the port of the socket that TPROXY chose

  Trace trace;
  std::vector<std::size_t> capture;     // the steps of the trace that took the packet
  std::vector<std::size_t> left_alone;  // RETURN and ACCEPT

  void hook(std::string what) { note(Step::Kind::hook, std::move(what)); }
  void kernel(std::string what) { note(Step::Kind::kernel, std::move(what)); }
  void doubt(const std::string& what) {
    if (std::ranges::find(trace.doubts, what) == trace.doubts.end()) trace.doubts.push_back(what);
  }
  void drop(std::string why) {
    trace.ending.kind = Ending::Kind::dropped;
    trace.ending.at = now.destination;
    trace.ending.why = std::move(why);
  }

 private:
  void note(Step::Kind kind, std::string what) {
    Step step;
    step.kind = kind;
    step.text = std::move(what);
    trace.steps.push_back(std::move(step));
  }
};

}  // namespace sidetrack
