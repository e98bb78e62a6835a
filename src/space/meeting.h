// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <algorithm>

#include "space/chain_paths.h"
#include "space/join.h"
#include "walk/hook_calls.h"
#include "walk/observer.h"

namespace sidetrack::space {

// Finds out, while a packet is followed, for which of the rules that were joined to one it is.
class Meeting final : public NullObserver {
 public:
  Meeting(ChainPaths& paths, const Packet& asked, const Point& point, const LiveRule& rule, const JoinedRule& joined)
      : paths_(paths), asked_(asked), point_(point), rule_(rule), joined_(joined) {}

  const ChainPath* path(const BaseChain& base, ChainIndex& chains, const WalkState& packet) override {
    const ChainPaths::Place place = paths_.place_of(base, chains, packet, asked_, point_);
    if (!place.root) return nullptr;
    const ChainPath& path = paths_.path(place.leaf);
    if (std::ranges::find(path.rules, &rule_, &RuleInChain::rule) != path.rules.end()) meet(packet.now);
    return &path;
  }
  void match(const Match& match, const PacketAtHook& packet) override {
    if (&match == &rule_.rule.matches[joined_.place]) meet(packet);
  }
  [[nodiscard]] std::size_t number() const { return number_; }

 private:
  void meet(const PacketAtHook& packet) {
    const auto met = std::ranges::find_if(joined_.each, [&](const Match& one) { return holds(one, packet); });
    if (met != joined_.each.end()) number_ = static_cast<std::size_t>(met - joined_.each.begin());
  }

  ChainPaths& paths_;
  const Packet& asked_;
  const Point& point_;
  const LiveRule& rule_;
  const JoinedRule& joined_;
  std::size_t number_ = 0;
};

}  // namespace sidetrack::space
