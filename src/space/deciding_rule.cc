// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/deciding_rule.h"

#include <algorithm>

#include "walk/explain.h"
#include "walk/hook_calls.h"
#include "walk/observer.h"

namespace sidetrack::space {
namespace {

// Finds out for which of the joined rules the packet is, once it comes there.
class Meeting final : public NullObserver {
 public:
  Meeting(const LiveRule& rule, const JoinedRule& joined) : asked_(&rule.rule.matches[joined.place]), joined_(joined) {}

  void match(const Match& match, const PacketAtHook& packet) override {
    if (&match != asked_) return;
    const auto met = std::ranges::find_if(joined_.each, [&](const Match& one) { return holds(one, packet); });
    if (met != joined_.each.end()) number_ = static_cast<std::size_t>(met - joined_.each.begin());
  }
  [[nodiscard]] std::size_t number() const { return number_; }

 private:
  const Match* asked_;
  const JoinedRule& joined_;
  std::size_t number_ = 0;
};

}  // namespace

LiveRule deciding_rule(Regions& regions, std::size_t side, const Step& step, const Point& point) {
  LiveRule made = *step.live;
  made.number = step.number;
  const auto joined = regions.joined_rules().find(step.live);
  if (joined == regions.joined_rules().end()) return made;
  const Packet packet = regions.universe().packet_with_ports(point);
  Meeting meeting(*step.live, joined->second);
  FamilyRules rules(regions.side(side).live, packet.destination->family);
  static_cast<void>(possibilities(packet, regions.side(side).pod, rules, meeting));
  made.number += static_cast<unsigned>(meeting.number());
  made.rule.matches[joined->second.place] = joined->second.each[meeting.number()];
  return made;
}

}  // namespace sidetrack::space
