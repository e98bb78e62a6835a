// SPDX-License-Identifier: GPL-2.0-or-later
#include "walk/observer.h"
#include "walk/packet_walk.h"
#include "walk/state_key.h"

namespace sidetrack {
namespace {

void add(StateKey& key, const Outcome& outcome) {
  key.add_all(outcome.kind, outcome.at, outcome.interface, outcome.other_interfaces.size());
  for (const std::string& other : outcome.other_interfaces) key.add(other);
  key.add(outcome.source.has_value());
  if (outcome.source) key.add(outcome.source->address);
  key.add_all(outcome.transparent, outcome.transparent_port);
}

}  // namespace

bool PacketWalk::checkpoint(std::optional<Hook> at, const Call* after) {
  if (observer() == nullptr || !observer()->wants_checkpoint()) return true;
  StateKey key;
  const PacketWalk* asked = this;  // the walk of what is asked about
  while (asked->outer_ != nullptr) asked = asked->outer_;
  for (const PacketWalk* each = this; each != nullptr; each = each->outer_) each->add_to(key, asked->asked_.mark);
  key.add(at);
  if (after != nullptr) key.add_all(after->kind, after->base.chain);
  const bool of_first = asked != this && !asked->has_ended_;  // what it notes is the other's only if it is the end
  const WalkState& packet = asked->packet_;
  std::optional<std::size_t> left_alone;
  if (!packet.left_alone.empty()) left_alone = packet.left_alone.back();
  context_.known = !observer()->checkpoint(
      {key.bytes(), packet.trace, left_alone, context_.forks, of_first || !packet.capture.empty()});
  packet_.seen = context_.known;
  return !context_.known;
}

// Adds the bits that are asked for.
void PacketWalk::add_mark(StateKey& key, std::uint32_t own_mark) const {
  const MarkChange made = packet_.now.mark_change(own_mark);
  key.add_all(made.own & context_.asked_marks, made.others & context_.asked_marks);
}

void PacketWalk::add_to(StateKey& key, std::uint32_t own_mark) const {
  const PacketAtHook& now = packet_.now;
  key.add_all(asked_.direction, asked_.state, now.answer, has_ended_, packet_.original, packet_.transparent,
              packet_.zone, packet_.zone_apart);
  add_rule(key, packet_.capture);
  for (const void* chain : packet_.to_come) key.add(chain);
  key.add_all(now.connection.destination, now.connection.source, now.source, now.destination, now.ephemeral_ports.first,
              now.ephemeral_ports.last, now.source_known, now.untracked,
              now.connmark.value_or(0) & context_.asked_marks, now.connmark.has_value());
  const bool is_answer = asked_.state == ConnectionState::reply;
  if (has_ended_) {
    if (pod_.tcp_fwmark_accept || !pod_.fwmark_reflect.empty()) add_mark(key, own_mark);
    key.add(packet_.meets_state);
    // A later packet comes in by it again; of what goes out the observer hears of it.
    if (packet_.meets_state && asked_.direction == Direction::in) key.add(asked_.interface);
    return add(key, packet_.trace.outcome);
  }
  if (is_answer || asked_.direction == Direction::in) key.add(asked_.interface);  // else the observer hears of it
  add_mark(key, own_mark);
  key.add_all(now.in, now.out, now.owner.has_value(), now.owner_known, now.tracked, packet_.by_lo, packet_.meets_state,
              packet_.destination_decided, packet_.source_decided, packet_.first.has_value());
  if (packet_.first) add(key, *packet_.first);
  key.add_all(way_.kind, way_.device, way_.has_hops() ? way_.route : nullptr);
}

void PacketWalk::add_rule(StateKey& key, const std::vector<std::size_t>& reasons) const {
  const Step* step = reasons.empty() ? nullptr : &packet_.trace.steps[reasons.back()];
  key.add(step != nullptr);
  if (step != nullptr) key.add_all(step->live, step->in);
}

}  // namespace sidetrack
