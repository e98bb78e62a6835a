// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "rule/match.h"
#include "walk/addresses.h"
#include "walk/explain.h"
#include "walk/observer.h"

namespace sidetrack {

// "rule 9 of nat ISTIO_OUTPUT", "the policy of inet filter output"
inline std::string rule_of(const Step& step) {
  const std::string which = step.number == 0 ? "the policy" : fmt::format("rule {}", step.number);
  return fmt::format("{} of {} {}", which, step.table, step.chain);
}

// All of a packet that decides about its further way.
struct PacketState {
  PacketAtHook now;
  std::optional<std::uint16_t> zone;         // nothing: no rule chose one, which is zone 0
  bool zone_apart = false;                   // it answers what was tracked in another zone: its connection is not known
  std::optional<Endpoint> original;          // the destination before it was translated
  std::optional<std::uint16_t> transparent;  // the port of the socket that TPROXY chose
  bool by_lo = false;                        // it went out by lo and came in again
  bool destination_decided = false;          // by nat, for its connection
  bool source_decided = false;
  bool meets_state = false;      // a rule was evaluated that may treat later packets otherwise, or make others do so
  std::optional<Outcome> first;  // of the connection's first packet, if this one is a later one
  std::vector<const void*> to_come;  // the base chains of this priority that are not asked yet
  std::vector<PacketState> request;  // what this one answers, if it is an answer: what is said of it depends on both
  friend bool operator==(const PacketState&, const PacketState&) = default;
};

// A packet on its way through the kernel, and what is noted of it.
struct WalkState : PacketState {
  Family family = Family::ipv4;

  Trace trace;
  std::vector<std::size_t> capture;       // the steps of the trace that took the packet
  std::vector<std::size_t> left_alone;    // RETURN and ACCEPT
  std::vector<std::size_t> zoned;         // the rule that chose the zone, if one did
  std::vector<SetMark> marked;            // what rules did to the mark since PacketWalk::watch_mark()
  bool mark_restored = false;             // since then, from that of the connection
  std::optional<std::uint8_t> discovery;  // it looks for a neighbour itself: its ICMPv6 type
  bool is_brief = false;                  // rules that do not match are not noted
  bool seen = false;                      // another walk went on from here: this one has no outcome of its own

  // `what` makes the words: who observes reads none.
  template <typename What>
  void hook(const What& what) {
    say(trace.steps.emplace_back(), Step::Kind::hook, what);
  }
  template <typename What>
  void kernel(const What& what) {
    say(trace.steps.emplace_back(), Step::Kind::kernel, what);
  }
  template <typename What>
  void say(Step& step, Step::Kind kind, const What& what) const {
    step.kind = kind;
    if (now.observer != nullptr) return;
    if constexpr (std::is_invocable_v<What>) {
      step.text = what();
    } else {
      step.text = what;
    }
  }
  void doubt(const std::string& what) {
    if (std::ranges::find(trace.doubts, what) == trace.doubts.end()) trace.doubts.push_back(what);
  }
  void drop(std::string why) { end(Outcome::Kind::dropped, std::move(why)); }
  void not_known(std::string why, std::string subject) {
    end(Outcome::Kind::unknown, std::move(why));
    trace.outcome.subject = std::move(subject);
  }
  void end(Outcome::Kind kind, std::string why) {
    trace.outcome = {};
    trace.outcome.kind = kind;
    trace.outcome.at = now.destination;
    trace.outcome.why = std::move(why);
    if (trace.outcome.arrives()) trace.outcome.source = new_source();
  }

  [[nodiscard]] std::optional<NewSource> new_source() const {
    const auto& made = now.connection.source;
    if (now.state == ConnectionState::reply || !made) return {};
    if (!made->after_known) return NewSource{};
    if (keeps_address(*made, now.observer)) return {};
    return NewSource{made->after.address};
  }
};

}  // namespace sidetrack
