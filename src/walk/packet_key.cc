// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk/observer.h"
#include "walk/packet_walk.h"
#include "walk/state_key.h"

namespace sidetrack {
namespace {

void add(StateKey& key, const Outcome& outcome) {
  key.add(outcome.kind);
  key.add(outcome.at);
  key.add(outcome.interface);
  key.add(outcome.other_interfaces.size());
  for (const std::string& other : outcome.other_interfaces) key.add(other);
  key.add(outcome.source);
  key.add(outcome.transparent);
  key.add(outcome.transparent_port);
}

}  // namespace

bool PacketWalk::checkpoint(std::optional<Hook> at, const Call* after) {
  if (observer() == nullptr || context_.forks.any()) return true;
  StateKey key;
  const PacketWalk* asked = this;  // the walk of what is asked about
  for (; asked->outer_ != nullptr; asked = asked->outer_) asked->outer_->add_to(key);
  add_to(key);
  key.add(at);
  if (after != nullptr) {
    key.add(after->kind);
    key.add(after->base.chain);
  }
  const bool of_first = asked != this && !asked->has_ended_;  // what it notes is the other's only if it is the end
  const WalkState& packet = asked->packet_;
  std::optional<std::size_t> left_alone;
  if (!packet.left_alone.empty()) left_alone = packet.left_alone.back();
  context_.known =
      !observer()->checkpoint({key.bytes(), packet.trace, left_alone, of_first || !packet.capture.empty()});
  packet_.seen = context_.known;
  return !context_.known;
}

void PacketWalk::add_to(StateKey& key) const {
  key.add(asked_.direction);
  key.add(asked_.state);
  key.add(packet_.now.answer);
  key.add(has_ended_);
  key.add(packet_.original);
  key.add(packet_.transparent);
  key.add(packet_.zone);
  key.add(packet_.zone_apart);
  add_rule(key, packet_.capture);
  key.add(packet_.now.connection.destination);
  key.add(packet_.now.connection.source);
  const PacketAtHook& now = packet_.now;
  key.add(now.source);
  key.add(now.destination);
  key.add(now.ephemeral_ports.first);
  key.add(now.ephemeral_ports.last);
  key.add(now.source_known);
  key.add(now.untracked);
  key.add(now.connmark);
  const bool is_answer = asked_.state == ConnectionState::reply;
  const bool own_mark = packet_.has_own_mark && now.mark == asked_.mark;
  const auto add_mark = [&] {
    key.add(own_mark);
    if (!own_mark) key.add(now.mark);
  };
  if (has_ended_) {
    if (pod_.tcp_fwmark_accept || !pod_.fwmark_reflect.empty()) add_mark();
    key.add(packet_.meets_state);
    // A later packet comes in by it again; of what goes out the observer hears of it.
    if (packet_.meets_state && asked_.direction == Direction::in) key.add(asked_.interface);
    return add(key, packet_.trace.outcome);
  }
  if (is_answer || asked_.direction == Direction::in) key.add(asked_.interface);  // else the observer hears of it
  add_mark();
  key.add(now.in);
  key.add(now.out);
  key.add(now.owner.has_value());
  key.add(now.owner_known);
  key.add(now.tracked);
  key.add(packet_.by_lo);
  key.add(packet_.meets_state);
  key.add(packet_.destination_decided);
  key.add(packet_.source_decided);
  key.add(packet_.first.has_value());
  if (packet_.first) add(key, *packet_.first);
  key.add(way_.kind);
  key.add(way_.device);
  key.add(way_.has_hops() ? way_.route : nullptr);
}

void PacketWalk::add_rule(StateKey& key, const std::vector<std::size_t>& reasons) const {
  const Step* step = reasons.empty() ? nullptr : &packet_.trace.steps[reasons.back()];
  key.add(step != nullptr);
  if (step == nullptr) return;
  key.add(step->live);
  key.add(step->in);
}

}  // namespace sidetrack
